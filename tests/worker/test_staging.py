import os
import socket

import pytest
from sqlalchemy import select

from ledger.db import Database
from ledger.lifecycle import Claim
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.tables import Worker
from worker.messages import FileMade
from worker.staging import CannotBegin, keep, stage
from worker.station import Station

CLAIM = Claim("job_" + "0" * 32, "default", 1, {"kind": "capture", "model": "model_" + "0" * 32})
PICTURE = FileMade(name="sheet.png", media_type="image/png")


@pytest.fixture
def station(tmp_path):
    settings = Settings(home=tmp_path)
    migrate(Database(settings.database))
    opened = Station(settings)
    yield opened
    opened.close()


def test_what_the_runner_made_is_kept_by_its_digest(station, tmp_path):
    (tmp_path / "sheet.png").write_bytes(b"picture")
    (product,) = keep(station, CLAIM, tmp_path, [PICTURE])
    assert station.store.read("default", product.kept.digest, 0, 7) == b"picture"


def test_a_link_out_of_its_folder_is_not_followed(station, tmp_path):
    (tmp_path / "sheet.png").symlink_to("/etc/passwd")
    with pytest.raises(FileNotFoundError, match="did not make"):
        keep(station, CLAIM, tmp_path, [PICTURE])


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "", ".hidden", "a/b"])
def test_a_name_is_not_a_path(name):
    with pytest.raises(ValueError):
        FileMade(name=name, media_type="x/y")


def test_a_model_that_is_gone_is_said_to_be_gone(station, tmp_path):
    with pytest.raises(CannotBegin, match="there is no model"):
        stage(station, CLAIM, tmp_path / "attempt")


def test_folders_of_dead_workers_are_cleared_away_and_those_of_living_ones_are_not(tmp_path):
    settings = Settings(home=tmp_path)
    db = Database(settings.database)
    migrate(db)
    here = socket.gethostname()
    with db.write() as session:
        for id, host, pid in (
            ("worker_living_here", here, os.getppid()),
            ("worker_dead_here", here, 999_999_999),
            ("worker_had_our_number", here, os.getpid()),
            ("worker_elsewhere", "another-machine", 999_999_999),
        ):
            session.add(Worker(id=id, queue="cpu", host=host, pid=pid))
    silent = Worker(id="worker_silent", queue="cpu", host="another-machine", pid=1, seen_at=1.0)
    with db.write() as session:
        session.add(silent)
        rows = [*session.scalars(select(Worker.id)), "worker_unknown"]
    for id in rows:
        (settings.work_folder / id / "job_x-1").mkdir(parents=True)
    station = Station(settings)
    left = {path.name for path in settings.work_folder.iterdir()}
    assert left == {"worker_living_here", "worker_elsewhere", station.folder.name}
    station.close()
    db.close()
