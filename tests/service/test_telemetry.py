import time
from contextlib import closing

import pytest
from sqlalchemy import func, insert, select, text

from ledger import waiting
from ledger.db import Database
from ledger.migrate import migrate
from ledger.tables import Job, Tenant
from service import telemetry


@pytest.fixture
def db(tmp_path):
    with closing(Database(f"sqlite:///{tmp_path / 'flashcards.db'}")) as database:
        migrate(database)
        yield database


def fill(db: Database, count: int, state: str) -> None:
    row = {"tenant": "default", "kind": "noop", "queue": "cpu", "spec": {}, "labels": {}, "progress": {}}
    rows = [{**row, "id": f"job_{state}_{n:08d}", "state": state, "max_attempts": 3} for n in range(count)]
    with db.write() as session:
        if session.get(Tenant, "default") is None:
            session.add(Tenant(id="default"))
            session.flush()
        session.execute(insert(Job), rows)


def plan(db: Database, statement) -> str:
    compiled = str(statement.compile(db.bind, compile_kwargs={"literal_binds": True}))
    with db.read() as session:
        return "\n".join(row[-1] for row in session.execute(text(f"EXPLAIN QUERY PLAN {compiled}")))


def test_jobs_are_counted_by_an_index_alone(db):
    fill(db, 50, "succeeded")
    statement = select(Job.state, Job.kind, func.count()).group_by(Job.state, Job.kind)
    assert "COVERING INDEX ix_job_state_kind" in plan(db, statement)


def test_a_long_queue_behind_a_long_history_is_cheap_to_look_at(db):
    fill(db, 20_000, "succeeded")
    fill(db, 20_000, "queued")
    with db.read() as session:
        began = time.process_time()
        assert waiting.oldest(session)["cpu"] >= 0
        assert time.process_time() - began < 0.2  # all 20,000 would be seconds


def figures(metrics) -> dict[str, list]:
    return {metric.name: metric.samples for metric in metrics}


def test_every_queue_is_told_of_even_if_nothing_is_there(db):
    found = figures(telemetry.of_ledger(db))
    for name in ("flashcards_oldest_queued_seconds", "flashcards_workers"):
        assert {sample.labels["queue"]: sample.value for sample in found[name]} == {"cpu": 0.0, "gpu": 0.0}
    assert found["flashcards_database_up"][0].value == 1


def test_without_a_database_that_is_what_is_told(tmp_path):
    with closing(Database(f"sqlite:///{tmp_path / 'nowhere' / 'flashcards.db'}")) as db:
        found = figures(telemetry.of_ledger(db))
    assert list(found) == ["flashcards_database_up"]
    assert found["flashcards_database_up"][0].value == 0


def test_two_scrapes_in_one_moment_ask_once(monkeypatch):
    asked: list[int] = []
    kept = telemetry.Kept(lambda: asked.append(1) or [])
    kept.collect()
    kept.collect()
    assert len(asked) == 1
    monkeypatch.setattr(telemetry, "KEPT_SECONDS", -1)
    kept.collect()
    assert len(asked) == 2


@pytest.mark.parametrize(("method", "told"), [("POST", "POST"), ("BREW", "other")])
def test_a_method_of_somebodys_own_is_no_label(method, told):
    counted = {"method": told, "route": "unmatched", "status": "404"}
    before = telemetry.REGISTRY.get_sample_value("flashcards_http_requests_total", counted) or 0
    telemetry.observe({"method": method}, 404, 0.01)
    assert telemetry.REGISTRY.get_sample_value("flashcards_http_requests_total", counted) == before + 1
