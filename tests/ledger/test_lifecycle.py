import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from sqlalchemy import select, update

from ledger import events, jobs, lifecycle
from ledger.errors import Conflict, NotFound
from ledger.jobs import Reports
from ledger.steps import TRANSITIONS
from ledger.tables import DEFAULT_TENANT, Attempt, Event, Job

STATES = sorted(TRANSITIONS)


def claim(db, job_id=None, worker="worker_a", lease=60):
    return lifecycle.claim(db, "cpu", worker, lease, job_id)


def job(db, job_id) -> Job:
    with db.read() as session:
        return session.get_one(Job, job_id)


def history(db, job_id) -> list[str]:
    with db.read() as session:
        rows = session.scalars(select(Event).where(Event.job_id == job_id).order_by(Event.seq)).all()
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    return [row.data["state"] for row in rows if row.kind == "state"]


def lapse(db, job_id):
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(lease_until=1.0))


class TestTable:
    @pytest.mark.parametrize(("source", "target"), list(product(STATES, STATES)))
    def test_a_step_happens_if_and_only_if_the_table_has_it(self, db, queue_job, source, target):
        job_id = queue_job()
        with db.write() as session:
            session.execute(update(Job).where(Job.id == job_id).values(state=source))
        with db.write() as session:
            if target in TRANSITIONS[source]:
                assert lifecycle.move(session, job_id, source, target, data={}) is not None
            else:
                with pytest.raises(ValueError, match=f"from {source} to {target}"):
                    lifecycle.move(session, job_id, source, target, data={})
        assert job(db, job_id).state == (target if target in TRANSITIONS[source] else source)

    def test_a_job_in_another_state_is_left_alone(self, db, queue_job):
        job_id = queue_job()
        with db.write() as session:
            assert lifecycle.move(session, job_id, "running", "succeeded", data={}) is None
        assert history(db, job_id) == ["queued"]


class TestClaim:
    def test_of_many_claimers_each_job_is_won_once(self, db, queue_job):
        ids = [queue_job() for _ in range(40)]
        with ThreadPoolExecutor(8) as pool:
            rings = [(id, f"worker_{n}") for n in range(8) for id in ids]
            won = [got for got in pool.map(lambda ring: claim(db, *ring), rings) if got is not None]
        assert sorted(got.job_id for got in won) == sorted(ids)
        assert {got.attempt for got in won} == {1}

    def test_without_an_id_the_oldest_is_taken(self, db, queue_job):
        first, second = queue_job(), queue_job()
        assert [claim(db).job_id, claim(db).job_id, claim(db)] == [first, second, None]

    def test_a_job_of_another_queue_is_not_taken(self, db, queue_job):
        queue_job()
        assert lifecycle.claim(db, "gpu", "worker_a", 60) is None

    def test_an_unknown_id_claims_nothing(self, db):
        assert claim(db, "job_" + "f" * 32) is None


class TestFence:
    def test_a_stolen_job_takes_no_more_writes_from_its_former_worker(self, db, queue_job):
        job_id = queue_job()
        old = claim(db, job_id, "worker_old")
        lapse(db, job_id)
        assert lifecycle.expire(db) == 1
        new = claim(db, job_id, "worker_new")
        assert new.attempt == old.attempt + 1

        report = Reports(entries=[("log", {"line": "from the dead"})], progress={"fraction": 0.9})
        assert jobs.record(db, old, 60, report) is None
        with db.write() as session:
            assert not lifecycle.settle(session, old, "succeeded", result={})
            assert not lifecycle.release(session, old, "too late")
        assert job(db, job_id).worker_id == "worker_new"
        with db.read() as session:
            assert not events.of_kind(session, job_id, "log")

    def test_the_holder_writes(self, db, queue_job):
        held = claim(db, queue_job())
        pulse = jobs.record(db, held, 60, Reports(progress={"fraction": 0.5}, metrics=[(3, {"loss": 0.1})]))
        assert pulse == lifecycle.Pulse(cancel_requested=False, overdue=False)
        assert job(db, held.job_id).progress == {"fraction": 0.5}
        with db.read() as session:
            (point,) = jobs.metrics_of(session, held.job_id)
            assert (point.name, point.step, point.value) == ("loss", 3, 0.1)


class TestLeases:
    def test_a_live_lease_is_left_alone(self, db, queue_job):
        claim(db, queue_job())
        assert lifecycle.expire(db) == 0

    def test_a_lapsed_one_costs_a_try_and_queues_again(self, db, queue_job):
        job_id = queue_job()
        claim(db, job_id)
        lapse(db, job_id)
        assert lifecycle.expire(db) == 1
        row = job(db, job_id)
        assert (row.state, row.strikes, row.lease_until, row.worker_id) == ("queued", 1, None, None)
        with db.read() as session:
            assert session.get_one(Attempt, (job_id, 1)).outcome == "lost"

    def test_a_poison_job_stops(self, db, queue_job):
        job_id = queue_job(max_attempts=2)
        for _ in range(2):
            held = claim(db, job_id)
            with db.write() as session:
                lifecycle.lose(session, job_id, held.attempt, "the runner was killed by signal 9")
        row = job(db, job_id)
        assert row.state == "failed"
        assert "killed by signal 9" in row.error["detail"]
        assert history(db, job_id) == ["queued", "running", "queued", "running", "failed"]

    def test_a_resume_point_clears_the_strikes(self, db, queue_job):
        job_id = queue_job(max_attempts=2)
        for _ in range(5):
            held = claim(db, job_id)
            with db.write() as session:
                events.append(session, job_id, [("resume_point", {"step": 1})], *lifecycle.mine(held), strikes=0)
                lifecycle.lose(session, job_id, held.attempt, "bad luck")
        assert job(db, job_id).state == "queued"

    def test_a_worker_that_closes_gives_back_at_no_cost(self, db, queue_job):
        held = claim(db, queue_job(max_attempts=1))
        with db.write() as session:
            assert lifecycle.release(session, held, "its worker is closing")
        row = job(db, held.job_id)
        assert (row.state, row.strikes) == ("queued", 0)

    def test_a_dead_worker_loses_its_jobs_only(self, db, queue_job):
        theirs, other = queue_job(), queue_job()
        claim(db, theirs, "worker_dead")
        claim(db, other, "worker_alive")
        assert lifecycle.expire_worker(db, "worker_dead", "it died") == 1
        assert (job(db, theirs).state, job(db, other).state) == ("queued", "running")


class TestClockPutBack:
    """Leases that were given before it look an hour longer after it."""

    def put_back(self, db):
        with db.write() as session:
            session.execute(update(Job).values(lease_until=Job.lease_until + 3600))

    def test_the_job_of_a_dead_worker_does_not_wait_for_the_clock(self, db, queue_job):
        job_id = queue_job()
        claim(db, job_id, lease=0.2)
        self.put_back(db)
        assert lifecycle.shorten_leases(db, 0.2) == 1
        assert lifecycle.expire(db) == 0
        time.sleep(0.3)
        assert lifecycle.expire(db) == 1

    def test_an_ordinary_lease_is_left_alone(self, db, queue_job):
        job_id = queue_job()
        claim(db, job_id)
        before = job(db, job_id).lease_until
        assert lifecycle.shorten_leases(db, 60) == 0
        assert job(db, job_id).lease_until == before


class TestCancel:
    def cancel(self, db, job_id, tenant=DEFAULT_TENANT):
        with db.write() as session:
            lifecycle.request_cancel(session, tenant, job_id)

    def test_a_queued_job_ends_at_once(self, db, queue_job):
        job_id = queue_job()
        self.cancel(db, job_id)
        self.cancel(db, job_id)
        assert history(db, job_id) == ["queued", "cancelled"]
        assert claim(db, job_id) is None

    def test_a_running_one_hears_of_it_when_it_renews(self, db, queue_job):
        held = claim(db, queue_job())
        self.cancel(db, held.job_id)
        self.cancel(db, held.job_id)
        assert jobs.record(db, held, 60, Reports()).cancel_requested
        with db.read() as session:
            assert len(events.of_kind(session, held.job_id, "note")) == 1

    def test_a_worker_that_dies_meanwhile_does_not_bring_it_back(self, db, queue_job):
        held = claim(db, queue_job())
        self.cancel(db, held.job_id)
        lifecycle.expire_worker(db, "worker_a", "it died")
        assert job(db, held.job_id).state == "cancelled"

    def test_what_has_ended_cannot_be_cancelled(self, db, queue_job):
        held = claim(db, queue_job())
        with db.write() as session:
            lifecycle.settle(session, held, "succeeded", result={})
        with pytest.raises(Conflict, match="it succeeded"):
            self.cancel(db, held.job_id)

    def test_a_foreign_tenant_finds_nothing(self, db, queue_job):
        job_id = queue_job()
        with pytest.raises(NotFound):
            self.cancel(db, job_id, "somebody else")
        assert job(db, job_id).state == "queued"


class TestRetry:
    @pytest.mark.parametrize("state", ["failed", "cancelled"])
    def test_what_went_wrong_starts_afresh(self, db, queue_job, state):
        held = claim(db, queue_job(timeout_seconds=5))
        with db.write() as session:
            lifecycle.settle(session, held, state, error={"title": "no"})
        with db.write() as session:
            lifecycle.retry(session, DEFAULT_TENANT, held.job_id)
        row = job(db, held.job_id)
        assert (row.state, row.error, row.deadline, row.ended_at, row.strikes) == ("queued", None, None, None, 0)

    def test_a_queued_or_finished_one_does_not(self, db, queue_job):
        job_id = queue_job()
        with db.write() as session, pytest.raises(Conflict, match="this one is queued"):
            lifecycle.retry(session, DEFAULT_TENANT, job_id)


def test_the_deadline_counts_from_the_first_start(db, queue_job):
    held = claim(db, queue_job(timeout_seconds=100))
    first = job(db, held.job_id).deadline
    with db.write() as session:
        lifecycle.release(session, held, "deploy")
    claim(db, held.job_id)
    assert job(db, held.job_id).deadline == first
    with db.write() as session:
        session.execute(update(Job).where(Job.id == held.job_id).values(deadline=1.0))
    assert jobs.record(db, lifecycle.Claim(held.job_id, "default", 2, {}), 60, Reports()).overdue
