import pytest
from sqlalchemy import update

from ledger import lifecycle, waiting
from ledger.clock import now
from ledger.tables import Job


def age(db, job_id: str, seconds: float) -> None:
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(queued_at=now() - seconds))


def oldest(db) -> dict[str, float]:
    with db.read() as session:
        return waiting.oldest(session)


def claim(db, job_id: str | None = None) -> lifecycle.Claim:
    found = lifecycle.claim(db, "cpu", "worker_1", 60, job_id)
    assert found is not None
    return found


def test_where_nothing_waits_it_is_nothing(db):
    assert oldest(db) == {"cpu": 0.0, "gpu": 0.0}


def test_the_longest_wait_counts_wherever_it_is_in_line(db, queue_job):
    first, second = queue_job(), queue_job()
    age(db, first, 5)
    age(db, second, 500)  # the first was put back meanwhile
    assert oldest(db)["cpu"] == pytest.approx(500, abs=30)
    assert oldest(db)["gpu"] == 0.0


def test_who_runs_or_has_ended_does_not_wait(db, queue_job):
    age(db, queue_job(), 500)
    claim(db)
    assert oldest(db)["cpu"] == 0.0


def test_a_claim_knows_how_long_its_job_waited(db, queue_job):
    age(db, queue_job(), 42)
    assert claim(db).waited_seconds == pytest.approx(42, abs=30)


def test_what_is_put_back_waits_anew(db, queue_job):
    job_id = queue_job()
    age(db, job_id, 900)
    first = claim(db)
    with db.write() as session:
        assert lifecycle.release(session, first, "its worker is closing")
    assert claim(db).waited_seconds < 300


def test_a_row_from_before_is_as_old_as_it_is(db, queue_job):
    job_id = queue_job()
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(queued_at=None, created_at=now() - 70))
    assert oldest(db)["cpu"] == pytest.approx(70, abs=30)


def of_learner(db, job_id: str, **values: object) -> None:
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(learner_id="learner_1", **values))


def test_a_task_whose_learner_is_busy_does_not_wait_for_a_worker(db, queue_job):
    running, behind = queue_job(), queue_job()
    of_learner(db, running, state="running")
    of_learner(db, behind, queued_at=now() - 500)
    assert oldest(db)["cpu"] == 0.0


def test_it_waits_from_the_moment_that_its_turn_came(db, queue_job):
    before, behind = queue_job(), queue_job()
    of_learner(db, before, state="succeeded", ended_at=now() - 100)
    of_learner(db, behind, queued_at=now() - 5000)
    assert oldest(db)["cpu"] == pytest.approx(100, abs=30)
    assert claim(db, behind).waited_seconds == pytest.approx(100, abs=30)


def test_a_claim_says_who_asked(db, queue_job):
    job_id = queue_job()
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(request_id="request_1", trace="00-a-b-01"))
    assert claim(db).caller == lifecycle.Caller("request_1", "00-a-b-01")
