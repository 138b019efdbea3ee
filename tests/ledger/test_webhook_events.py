"""However a job comes to its end, webhooks are told of it in the transaction that ends it."""

import pytest
from hooks import EVERYTHING, add_webhook, ends, told
from keeping import dataset_row
from sqlalchemy import update

from engine.errors import ForgotTooMuch
from flashcards.contract.specs import job_spec
from flashcards.contract.webhooks import WebhookBody
from ledger import admission, compare, jobs, lifecycle, webhook_events
from ledger.admission import Admitted
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Job

TRAIN = {"count": 10, "shape": "8x8x1", "dtype": "uint8", "low": 0, "high": 255}
LEARNER = "learner_" + "1" * 32


@pytest.fixture(autouse=True)
def all_ends_are_told(db):
    """In every test here: the history of the jobs and the deliveries say the same."""
    webhook, _ = add_webhook(db)
    yield
    jobs_told = [(row.job_id, row.data["state"]) for row in told(db, webhook.id) if row.type.startswith("job.")]
    assert sorted(jobs_told) == sorted(ends(db))
    assert jobs_told


@pytest.fixture
def queue_task(db):
    def queue_task() -> str:
        spec = job_spec.validate_python({"kind": "learn", "learner": LEARNER, "dataset": "dataset_" + "2" * 32})
        with db.write() as session:
            return jobs.create(session, DEFAULT_TENANT, spec, Admitted("cpu", [], LEARNER)).id

    return queue_task


@pytest.fixture
def comparison(db):
    """Two strategies with two tasks each."""
    rows = [dataset_row("0" * 64, splits={"train": TRAIN}) for _ in range(2)]
    with db.write() as session:
        session.add_all(rows)
    spec = job_spec.validate_python(
        {
            "kind": "compare",
            "architecture": "blk_1_fil_8",
            "datasets": [row.id for row in rows],
            "strategies": [{"kind": "naive"}, {"kind": "flashcards"}],
            "labels": {"team": "blue"},
        }
    )
    with db.write() as session:
        admitted = admission.admit(session, Settings(), DEFAULT_TENANT, spec)
        return compare.create(session, DEFAULT_TENANT, spec, admitted).id


def claim(db, job_id=None):
    return lifecycle.claim(db, "cpu", "worker_a", 60, job_id)


def settle(db, held, state, **what):
    with db.write() as session:
        assert lifecycle.settle(session, held, state, **what)


def cancel(db, job_id):
    with db.write() as session:
        lifecycle.request_cancel(session, DEFAULT_TENANT, job_id)


def types(db) -> list[str]:
    return [row.type for row in told(db)]


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_by_its_worker(db, queue_job, state):
    settle(db, claim(db, queue_job()), state)
    assert types(db) == [f"job.{state}"]


def test_by_a_cancel_before_it_ran(db, queue_job):
    cancel(db, queue_job())
    assert types(db) == ["job.cancelled"]


def test_by_one_lost_attempt_too_many(db, queue_job):
    job_id = queue_job(max_attempts=2)
    claim(db, job_id)
    for _ in range(2):
        with db.write() as session:
            session.execute(update(Job).where(Job.id == job_id).values(lease_until=1.0))
        lifecycle.expire(db)
        claim(db, job_id)
    (row,) = told(db)
    assert (row.type, row.data["error"]["type"]) == ("job.failed", "attempts-exhausted")


@pytest.mark.parametrize("verb", ["release", "lose"])
def test_by_a_cancel_that_its_worker_did_not_live_to_see(db, queue_job, verb):
    held = claim(db, queue_job())
    cancel(db, held.job_id)
    with db.write() as session:
        if verb == "release":
            lifecycle.release(session, held, "its worker is closing")
        else:
            lifecycle.lose(session, held.job_id, held.attempt, "it died")
    assert types(db) == ["job.cancelled"]


def test_by_the_death_of_its_worker(db, queue_job):
    claim(db, queue_job(max_attempts=1))
    lifecycle.expire_worker(db, "worker_a", "it died")
    assert types(db) == ["job.failed"]


def test_a_second_end_after_a_retry_is_a_second_delivery(db, queue_job):
    job_id = queue_job()
    settle(db, claim(db, job_id), "failed")
    with db.write() as session:
        lifecycle.retry(session, DEFAULT_TENANT, job_id)
    settle(db, claim(db, job_id), "succeeded")
    assert types(db) == ["job.failed", "job.succeeded"]
    assert len({row.id for row in told(db)}) == 2


class TestComparisons:
    def test_cancelled_with_all_that_waits(self, db, comparison):
        cancel(db, comparison)
        assert types(db) == ["job.cancelled"] * 5

    def test_a_task_that_fails_ends_those_behind_it(self, db, comparison):
        settle(db, claim(db), "failed")
        assert types(db) == ["job.failed", "job.cancelled"]

    def test_all_the_way(self, db, comparison):
        while (held := claim(db)) is not None:
            settle(db, held, "succeeded")
        assert types(db).count("job.succeeded") == 5
        last = told(db)[-1].data
        assert (last["job"], last["kind"]) == (comparison, "compare")
        assert {row.data.get("parent") for row in told(db)[:-1]} == {comparison}
        assert all(row.data["labels"] == {"team": "blue"} for row in told(db))


class TestWhatIsNotAnEnd:
    def test_a_lost_attempt(self, db, queue_job):
        held = claim(db, queue_job())
        with db.write() as session:
            lifecycle.lose(session, held.job_id, held.attempt, "it died")
        assert types(db) == []
        settle(db, claim(db, held.job_id), "succeeded")

    def test_one_that_was_rolled_back(self, db, queue_job):
        held = claim(db, queue_job())
        with db.write() as session:
            lifecycle.settle(session, held, "succeeded")
            session.rollback()
        assert types(db) == []
        settle(db, held, "failed")


class TestLearners:
    def test_a_version_is_told_beside_its_job(self, db, queue_task):
        settle(db, claim(db, queue_task()), "succeeded", result={"version": 3})
        assert types(db) == ["job.succeeded", "learner.version.created"]
        row = told(db)[1]
        assert (row.learner_id, row.data["learner"], row.data["version"]) == (LEARNER, LEARNER, 3)
        assert row.data["links"]["version"] == f"/v1/learners/{LEARNER}/versions/3"

    def test_a_broken_budget_too(self, db, queue_task):
        error = {"type": ForgotTooMuch.type, "title": ForgotTooMuch.title, "detail": "by far"}
        settle(db, claim(db, queue_task()), "failed", error=error)
        assert types(db) == ["job.failed", "learner.budget.broken"]
        assert told(db)[1].data["error"] == {"type": ForgotTooMuch.type, "title": ForgotTooMuch.title}

    def test_other_failures_break_no_budget(self, db, queue_task):
        settle(db, claim(db, queue_task()), "failed", error={"type": "timeout", "title": "Late", "detail": "x"})
        assert types(db) == ["job.failed"]

    def test_the_record_and_the_engine_call_it_the_same(self, db, queue_job):
        assert ForgotTooMuch.type == webhook_events.BUDGET_BROKEN
        cancel(db, queue_job())


class TestWhoIsTold:
    def test_only_of_what_was_asked_for(self, db, queue_job):
        webhook, _ = add_webhook(db, events=["job.failed"])
        settle(db, claim(db, queue_job()), "succeeded")
        assert told(db, webhook.id) == []
        settle(db, claim(db, queue_job()), "failed")
        assert [row.type for row in told(db, webhook.id)] == ["job.failed"]

    @pytest.mark.parametrize(
        ("labels", "wanted"),
        [
            ({}, True),
            ({"team": "blue"}, True),
            ({"team": "blue", "line": "7"}, True),
            ({"team": "red"}, False),
            ({"team": "blue", "x": "y"}, False),
        ],
    )
    def test_only_of_jobs_with_all_the_labels(self, db, queue_job, labels, wanted):
        webhook, _ = add_webhook(db, labels=labels)
        settle(db, claim(db, queue_job(labels={"team": "blue", "line": "7"})), "succeeded")
        assert bool(told(db, webhook.id)) == wanted

    def test_nobody_else(self, db, queue_job):
        from ledger.tables import Tenant

        with db.write() as session:
            session.add(Tenant(id="mallory"))
        webhook, _ = add_webhook(db, tenant="mallory")
        settle(db, claim(db, queue_job()), "succeeded")
        assert told(db, webhook.id) == []


def test_the_data_is_small_and_says_where_to_look(db, queue_job):
    job_id = queue_job(labels={"a": "b"})
    made = "flashcards_" + "3" * 32
    settle(db, claim(db, job_id), "succeeded", result={"flashcards": made, "cards_digest": "0" * 64})
    (row,) = told(db)
    assert row.data == {
        "job": job_id,
        "kind": "capture",
        "state": "succeeded",
        "labels": {"a": "b"},
        "made": {"flashcards": made},
        "links": {"job": f"/v1/jobs/{job_id}", "report": f"/v1/jobs/{job_id}/report.json"},
    }
    WebhookBody.model_validate({"type": row.type, "timestamp": "2026-01-01T00:00:00Z", "data": row.data})
    assert set(EVERYTHING) > {row.type}
