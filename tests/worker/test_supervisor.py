"""Attempts whose runner says what it should not: a real process, born as runners are, and with nothing to do."""

import json
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from flashcards.contract.specs import job_spec
from ledger import artifacts, jobs
from ledger.admission import Admitted
from ledger.db import Database
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Job, Model
from worker import station as stations
from worker import supervisor, tasks
from worker.child import Parent

ROOT = Path(__file__).resolve().parents[2]
LEASE = 60.0  # nothing here may wait for it
MODEL = "model_" + "0" * 32
NURSERY = """
import json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from worker.nursery import Nursery

def live():
    out = json.loads(sys.stdin.readline())["out"]
    open(out + "/predictions.npz", "wb").write(b"hours of work")
    print(sys.argv[2], flush=True)

Nursery(socket.socket(fileno=os.dup(0)), live).serve()
"""
FILE = {"name": "predictions.npz", "media_type": "application/octet-stream"}


@pytest.fixture
def station(tmp_path, monkeypatch):
    monkeypatch.setattr(stations, "_station", None)
    settings = Settings(home=tmp_path / "home", lease_seconds=LEASE)
    settings.home.mkdir()
    migrate(Database(settings.database))
    opened = stations.open_station(settings)
    yield opened
    opened.close()


def answer(station, said: object) -> None:
    """From now on every runner here says this, and ends."""
    text = said if isinstance(said, str) else json.dumps(said)
    station.parent = Parent([sys.executable, "-I", "-c", NURSERY, str(ROOT), text])


def queue(station, spec: dict) -> str:
    with station.db.write() as session:
        return jobs.create(session, DEFAULT_TENANT, job_spec.validate_python(spec), Admitted("cpu", [])).id


@pytest.fixture
def job(station, tmp_path):
    """One that a worker can begin."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    kept = supervisor.staging.hash_file(path)
    supervisor.blobs.put(station.db, station.store, DEFAULT_TENANT, kept, path)
    facts = {"name": "net", "architecture": {"blocks": 2, "filters": 4}, "input": "16x16x1", "range": [0, 1]}
    row = Model(id=MODEL, tenant=DEFAULT_TENANT, **facts, parameters=1, origin="upload")
    row.digest, row.size = kept.digest, kept.size
    with station.db.write() as session:
        session.add(row)
    return queue(station, {"kind": "export", "model": MODEL})


def run(station, job_id: str) -> Job:
    tasks.run(job_id)  # raises where a defect goes through to Celery
    with station.db.read() as session:
        return session.scalars(select(Job).where(Job.id == job_id)).one()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"say": "done", "result": {"opset": "many"}, "files": [FILE]}, "opset: Input should be a valid integer"),
        ({"say": "done", "result": {}, "files": [FILE]}, "and 5 more"),
    ],
)
def test_a_result_that_cannot_go_on_record_fails_the_job_at_once_and_keeps_its_files(station, job, said, words):
    answer(station, said)
    ended = run(station, job)
    assert (ended.state, ended.attempt, ended.error["type"]) == ("failed", 1, "unfit-result")
    assert words in ended.error["detail"]
    with station.db.read() as session:
        assert [product.name for product in artifacts.products_of(session, job)] == ["predictions.npz"]


@pytest.mark.parametrize("said", ["", "done!", {"say": "done", "result": [], "files": []}])
def test_a_runner_that_ends_well_without_saying_how_fails_the_job_at_once(station, job, said):
    answer(station, said)
    ended = run(station, job)
    assert (ended.state, ended.attempt, ended.error["type"]) == ("failed", 1, "unfit-result")


def test_what_the_record_refuses_is_not_taken_for_a_database_that_is_away(station, job):
    answer(station, {"say": "failed", "error": {"type": "t", "title": "t", "detail": "d"}, "files": [FILE, FILE]})
    ended = run(station, job)
    assert (ended.state, ended.error["type"]) == ("failed", "internal")
    assert "IntegrityError" in ended.error["detail"]


def test_a_defect_before_the_runner_fails_the_job_and_the_worker_goes_on_to_the_next(station, job):
    answer(station, "")
    following = queue(station, {"kind": "noop"})
    with station.db.write() as session:
        session.get_one(Model, MODEL).input = "wide"
    ended = run(station, job)
    assert (ended.state, ended.error["type"]) == ("failed", "internal")
    assert "ValidationError" in ended.error["detail"]
    assert "wide" not in ended.error["detail"]
    with station.db.read() as session:
        assert session.get_one(Job, following).state == "succeeded"
