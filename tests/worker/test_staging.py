import pytest

from ledger.db import Database
from ledger.lifecycle import Claim
from ledger.migrate import migrate
from ledger.settings import Settings
from worker.messages import FileMade
from worker.staging import InputGone, keep, stage
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
    with pytest.raises(InputGone, match="there is no model"):
        stage(station, CLAIM, tmp_path / "attempt")


def test_folders_of_dead_workers_are_cleared_away_and_those_of_living_ones_are_not(tmp_path):
    settings = Settings(home=tmp_path)
    migrate(Database(settings.database))
    (settings.work_folder / "999999999" / "job_x-1").mkdir(parents=True)
    (settings.work_folder / "1" / "job_y-1").mkdir(parents=True)
    station = Station(settings)
    assert sorted(path.name for path in settings.work_folder.iterdir()) == sorted(["1", station.folder.name])
    station.close()
