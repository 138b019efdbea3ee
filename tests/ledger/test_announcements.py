import pytest
from sqlalchemy import select, update

from flashcards.contract.specs import job_spec
from ledger import announcements, compare, jobs, lifecycle
from ledger.admission import Admitted
from ledger.clock import now
from ledger.tables import DEFAULT_TENANT, Announcement


@pytest.fixture
def queue_noop(db):
    def queue_noop(announce: str | None = "results.mine", **fields) -> str:
        spec = job_spec.validate_python({"kind": "noop", "announce": announce, **fields})
        with db.write() as session:
            return jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue="cpu", inputs=[])).id

    return queue_noop


def bodies(db) -> list[dict]:
    with db.read() as session:
        return [each.body for each in session.scalars(select(Announcement).order_by(Announcement.id))]


def test_the_end_of_a_job_with_what_came_of_it(db, queue_noop):
    job_id = queue_noop(labels={"line": "7"})
    claim = lifecycle.claim(db, "cpu", "worker_a", 60)
    assert bodies(db) == []
    with db.write() as session:
        lifecycle.settle(session, claim, "succeeded", result={"worker": "worker_a"})
    (said,) = bodies(db)
    assert said["event"] == "job.succeeded"
    assert (said["job"]["id"], said["job"]["labels"]) == (job_id, {"line": "7"})
    assert said["job"]["result"] == {"worker": "worker_a"}


def test_a_settling_that_is_undone_announces_nothing(db, queue_noop):
    queue_noop()
    claim = lifecycle.claim(db, "cpu", "worker_a", 60)
    with db.write() as session:
        lifecycle.settle(session, claim, "succeeded", result={"worker": "worker_a"})
        session.rollback()
    assert bodies(db) == []


def test_cancelled_in_the_queue(db, queue_noop):
    job_id = queue_noop()
    with db.write() as session:
        lifecycle.request_cancel(session, DEFAULT_TENANT, job_id)
    assert [said["event"] for said in bodies(db)] == ["job.cancelled"]


def test_failed_for_the_last_time_only(db, queue_noop):
    queue_noop(max_attempts=2)
    for expected in ([], ["job.failed"]):
        claim = lifecycle.claim(db, "cpu", "worker_a", 60)
        with db.write() as session:
            lifecycle.lose(session, claim.job_id, claim.attempt, "it was killed")
        assert [said["event"] for said in bodies(db)] == expected
    assert bodies(db)[0]["job"]["error"]["type"] == "attempts-exhausted"


def test_who_did_not_ask_is_not_told(db, queue_noop):
    queue_noop(announce=None)
    claim = lifecycle.claim(db, "cpu", "worker_a", 60)
    with db.write() as session:
        lifecycle.settle(session, claim, "failed", error={"type": "x", "title": "x", "detail": "x"})
    assert bodies(db) == []


def test_the_parts_of_a_comparison_are_not_announced():
    asked = {"datasets": ["dataset_" + "0" * 32] * 2, "strategies": [{"kind": "naive"}], "announce": "results.mine"}
    spec = job_spec.validate_python({"kind": "compare", **asked})
    tasks = compare._tasks(spec, "learner_" + "0" * 32, spec.strategies[0], 0)
    assert [task.announce for task in tasks] == [None, None]


@pytest.fixture
def write(db):
    def write() -> None:
        with db.write() as session:
            announcements.write(session, "results.mine", "submission.accepted", "a")

    return write


def make_due(db) -> None:
    with db.write() as session:
        session.execute(update(Announcement).values(due_at=now() - 1))


def test_taken_by_one_and_by_another_when_that_one_has_died(db, write):
    write()
    (taken,) = announcements.take(db)
    assert announcements.take(db) == []
    make_due(db)
    assert announcements.take(db) == [taken]
    announcements.said(db, [taken.id])
    make_due(db)
    assert announcements.take(db) == []


def test_what_was_not_heard_comes_later_each_time(db, write):
    write()
    pauses = []
    for _ in range(3):
        make_due(db)
        (taken,) = announcements.take(db)
        announcements.put_off(db, [taken.id])
        with db.read() as session:
            pauses.append(session.scalar(select(Announcement.due_at - now())))
    assert pauses == [pytest.approx(wait, abs=0.5) for wait in (1, 4, 9)]


def test_after_days_it_is_given_up(db, write):
    write()
    assert announcements.forget(db) == 0
    with db.write() as session:
        session.execute(update(Announcement).values(created_at=now() - 4 * 86400))
    assert announcements.forget(db) == 1
    assert bodies(db) == []
