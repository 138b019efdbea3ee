"""A learner takes one task at a time, in the order in which they came, whoever claims and whatever is retried."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import func, select

from flashcards.contract.specs import job_spec
from ledger import doorbell, jobs, lifecycle, turns
from ledger.admission import Admitted
from ledger.ids import new_id
from ledger.tables import DEFAULT_TENANT, Job, Learner

DATASET = "dataset_" + "0" * 32


@pytest.fixture
def learner(db):
    def learner() -> str:
        row = Learner(
            id=new_id("learner"),
            tenant=DEFAULT_TENANT,
            name="pupil",
            scenario="reconstruction",
            noise=0.1,
            clip=True,
            architecture={},
            range=[0, 1],
        )
        with db.write() as session:
            session.add(row)
        return row.id

    return learner


@pytest.fixture
def queue_task(db):
    def queue_task(learner_id: str, queue: str = "cpu") -> str:
        spec = job_spec.validate_python({"kind": "learn", "learner": learner_id, "dataset": DATASET})
        with db.write() as session:
            return jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue, [learner_id], learner_id)).id

    return queue_task


def claim(db, job_id=None, queue="cpu"):
    return lifecycle.claim(db, queue, "worker_a", 60, job_id)


def end(db, claim, state="succeeded"):
    with db.write() as session:
        assert lifecycle.settle(session, claim, state)


def retry(db, job_id):
    with db.write() as session:
        lifecycle.retry(session, DEFAULT_TENANT, job_id)


def following(db, learner_id):
    with db.read() as session:
        return turns.following(session, learner_id)


def test_a_task_waits_for_the_one_before_it(db, learner, queue_task):
    pupil = learner()
    first, second = queue_task(pupil), queue_task(pupil)
    assert claim(db, second) is None, "a ring for the second must not take it"
    held = claim(db)
    assert held.job_id == first
    assert claim(db) is None
    end(db, held)
    assert claim(db).job_id == second


def test_a_task_that_went_wrong_holds_up_nobody(db, learner, queue_task):
    pupil = learner()
    first, second = queue_task(pupil), queue_task(pupil)
    end(db, claim(db, first), "failed")
    assert claim(db).job_id == second


def test_others_go_past_it(db, learner, queue_task, queue_job):
    pupil, other = learner(), learner()
    queue_task(pupil)
    queue_task(pupil)
    theirs, capture = queue_task(other), queue_job()
    assert [claim(db).job_id for _ in range(3)][1:] == [theirs, capture]
    assert claim(db) is None


def test_one_that_waits_in_another_queue_is_waited_for(db, learner, queue_task):
    pupil = learner()
    first, second = queue_task(pupil, "gpu"), queue_task(pupil, "cpu")
    assert claim(db) is None
    assert following(db, pupil) == (first, "gpu")
    end(db, claim(db, first, "gpu"))
    assert following(db, pupil) == (second, "cpu")


def test_an_older_task_that_is_retried_waits_for_the_one_that_runs(db, learner, queue_task):
    pupil = learner()
    first, second = queue_task(pupil), queue_task(pupil)
    end(db, claim(db, first), "failed")
    held = claim(db, second)
    retry(db, first)
    assert claim(db, first) is None
    assert claim(db) is None
    assert following(db, pupil) is None
    end(db, held)
    assert claim(db).job_id == first


def test_one_that_was_given_back_goes_before_its_follower(db, learner, queue_task):
    pupil = learner()
    first, second = queue_task(pupil), queue_task(pupil)
    held = claim(db, first)
    with db.write() as session:
        lifecycle.release(session, held, "its worker is closing")
    assert claim(db, second) is None
    assert claim(db).job_id == first


def test_nobody_is_rung_for_one_that_has_to_wait(db, learner, queue_task, queue_job):
    pupil = learner()
    claimed = claim(db, queue_task(pupil))
    queue_task(pupil)
    ready = queue_job()
    assert doorbell._unheard(db, "cpu", -1, 1) == [ready]
    end(db, claimed)


def test_of_any_number_of_claimers_one_teaches_a_learner(db, learner, queue_task):
    """Older tasks are retried while younger ones are claimed: what one statement saw may be past when it commits."""
    rounds, claimers = 12, 6
    pupil = learner()
    ids = [queue_task(pupil) for _ in range(claimers)]
    for _ in range(rounds):
        held = claim(db, ids[0])
        end(db, held, "failed")
        together = Barrier(claimers + 1)

        def go(job_id, together=together):
            together.wait()
            return claim(db, job_id)

        def again(together=together):
            together.wait()
            retry(db, ids[0])

        with ThreadPoolExecutor(claimers + 1) as pool:
            tried = [pool.submit(go, job_id) for job_id in (None, *ids[:-1])]
            pool.submit(again).result()
            won = [got for got in (each.result() for each in tried) if got is not None]
        with db.read() as session:
            running = session.scalar(select(func.count()).where(Job.state == "running"))
        assert len(won) == running <= 1, won
        for got in won:
            with db.write() as session:
                lifecycle.release(session, got, "next round")
