import os

import pytest
from keeping import age, has_bytes, keep_dataset, write_file

from ledger import blobs
from ledger.db import Database
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT
from worker.station import Station
from worker.sweeper import Sweeper


@pytest.fixture
def station(tmp_path):
    settings = Settings(home=tmp_path / "home", collect_seconds=3600)
    settings.home.mkdir()
    migrate(Database(settings.database))
    opened = Station(settings)
    yield opened
    opened.close()


def loose(station, folder, content: bytes) -> str:
    kept, path = write_file(folder, content)
    blobs.put(station.db, station.store, DEFAULT_TENANT, kept, path)
    age(station.db, kept.digest, 2 * station.settings.collect_grace_seconds)
    return kept.digest


def test_blobs_are_collected_at_their_own_pace_and_data_that_is_not_kept_at_every_round(station, tmp_path):
    sweeper = Sweeper(station)
    first = loose(station, tmp_path, b"first")
    sweeper.sweep()
    assert not has_bytes(station.store, first)
    second = loose(station, tmp_path, b"second")
    _, unread = keep_dataset(station.db, station.store, tmp_path, b"images", retain=False, expires_at=1.0)
    sweeper.sweep()
    assert has_bytes(station.store, second)
    assert not has_bytes(station.store, unread)


def test_the_first_round_also_finds_what_has_no_row(station, tmp_path):
    stray = station.settings.home / "store" / DEFAULT_TENANT / ("a" * 64)
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_bytes(b"left behind")
    os.utime(stray, (0, 0))
    Sweeper(station).sweep()
    assert not stray.exists()
