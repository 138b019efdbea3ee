import threading

import pytest
from servers import Postgres, open_folder, running

from flashcards.contract.specs import job_spec
from ledger import jobs
from ledger.admission import Admitted
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Job
from worker import station as stations
from worker import tasks


@pytest.fixture
def server():
    with open_folder() as folder, running(Postgres(folder / "postgres")) as postgres:
        yield postgres


@pytest.fixture
def station(server, tmp_path, monkeypatch):
    monkeypatch.setattr(stations, "_station", None)
    opened = stations.open_station(Settings(home=tmp_path, database_url=server.url))
    yield opened
    opened.close()


def queue_noop(db) -> str:
    with db.write() as session:
        spec = job_spec.validate_python({"kind": "noop"})
        return jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue="cpu", inputs=[])).id


def state(db, job_id) -> str:
    with db.read() as session:
        return session.get_one(Job, job_id).state


def test_who_was_rung_for_is_taken_and_then_all_that_wait(station):
    ids = [queue_noop(station.db) for _ in range(3)]
    tasks.run(ids[1])
    assert [state(station.db, job_id) for job_id in ids] == ["succeeded"] * 3


def test_with_the_database_away_the_ring_is_not_forgotten(station, server, monkeypatch):
    monkeypatch.setattr(tasks, "AWAY_SECONDS", 0.05)
    job_id = queue_noop(station.db)
    server.stop()
    ring = threading.Thread(target=tasks.run, args=(job_id,))
    ring.start()
    ring.join(0.5)
    assert ring.is_alive()
    server.start()
    ring.join(30)
    assert state(station.db, job_id) == "succeeded"


def test_a_worker_that_closes_meanwhile_does_not_wait_for_the_database(station, server):
    server.stop()
    ring = threading.Thread(target=tasks.run, args=(None,))
    ring.start()
    station.draining.set()
    ring.join(10)
    assert not ring.is_alive()
    server.start()
