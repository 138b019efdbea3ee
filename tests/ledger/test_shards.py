"""A capture that was split waits for its shards, whoever ends when, and comes to its own end in every case."""

from threading import Barrier, Thread

import pytest
from soundness import assert_ledger_sound
from sqlalchemy import select, update

from flashcards.contract.recipe import Recipe
from flashcards.contract.shards import Shard, Split
from flashcards.contract.specs import CaptureSpec
from ledger import artifacts, compare, lifecycle, parents, shards, workers
from ledger.artifacts import Product
from ledger.blobs import announce
from ledger.errors import Conflict
from ledger.jobs import Reports, record
from ledger.keys import Keyring
from ledger.store import Kept
from ledger.tables import DEFAULT_TENANT, ApiKey, Artifact, Attempt, Event, Job

MODEL = "model_" + "0" * 32
RECIPE = Recipe(
    model_digest="m",
    source="maze",
    seed=0,
    r=1,
    count=200,
    input="8x8x1",
    range=(0, 1),
    dtype="float32",
    backend="torch",
    threads=3,
    chunk=64,
)
SPLIT = Split(recipe=RECIPE, shards=[Shard(first=0, count=128), Shard(first=128, count=72)])


@pytest.fixture(autouse=True)
def sound(db):
    yield
    assert_ledger_sound(db)


@pytest.fixture
def start(db, queue_job):
    """A capture that a worker has just split in two."""

    def start(**changes) -> str:
        job_id = queue_job(**{"count": 200, "labels": {"run": "1"}, "max_attempts": 2, **changes})
        split(db, claim(db, job_id))
        return job_id

    return start


def claim(db, job_id=None):
    return lifecycle.claim(db, "cpu", "worker_a", 60, job_id)


def split(db, held) -> bool:
    with db.write() as session:
        return shards.split(session, held, SPLIT)


def end(db, held, state="succeeded", **what):
    with db.write() as session:
        assert lifecycle.settle(session, held, state, **what)


def lose(db, held):
    with db.write() as session:
        assert lifecycle.lose(session, held.job_id, held.attempt, "the runner was killed by signal 9")


def job(db, job_id) -> Job:
    with db.read() as session:
        return session.get_one(Job, job_id)


def children(db, parent) -> list[Job]:
    with db.read() as session:
        return list(parents.children(session, parent))


def states(db, parent) -> list[str]:
    return [child.state for child in children(db, parent)]


def cancel(db, job_id):
    with db.write() as session:
        lifecycle.request_cancel(session, DEFAULT_TENANT, job_id)


def retry(db, job_id):
    with db.write() as session:
        lifecycle.retry(session, DEFAULT_TENANT, job_id)


class TestSplit:
    def test_the_capture_waits_and_its_shards_are_queued(self, db, start):
        parent = start(timeout_seconds=60)
        row, (one, other) = job(db, parent), children(db, parent)
        assert (row.state, row.lease_until, row.worker_id, row.deadline) == ("waiting", None, None, None)
        assert [(child.kind, child.state, child.queue) for child in (one, other)] == [("shard", "queued", "cpu")] * 2
        assert [(child.spec["first"], child.spec["count"]) for child in (one, other)] == [(0, 128), (128, 72)]
        assert (one.spec["recipe"]["threads"], one.max_attempts, one.timeout_seconds, one.labels) == (3, 2, 60, {})
        with db.read() as session:
            (attempt,) = session.scalars(select(Attempt).where(Attempt.job_id == parent))
            assert (attempt.outcome, attempt.reason) == ("split", "split into 2 shards")
            assert {id for id, _ in parents.to_ring_for(session, parent, 10)} == {one.id, other.id}

    def test_nobody_claims_it_meanwhile(self, db, start):
        parent = start()
        assert claim(db, parent) is None
        assert {claim(db).job_id, claim(db).job_id} == {child.id for child in children(db, parent)}
        assert claim(db) is None

    def test_who_has_lost_the_job_does_not_split_it(self, db, queue_job):
        held = claim(db, queue_job(count=200))
        lose(db, held)
        assert not split(db, held)
        assert children(db, held.job_id) == []

    def test_one_that_is_to_be_cancelled_is_not_split(self, db, queue_job):
        held = claim(db, queue_job(count=200))
        cancel(db, held.job_id)
        assert split(db, held)
        assert (job(db, held.job_id).state, children(db, held.job_id)) == ("cancelled", [])

    def test_an_earlier_strike_does_not_count_against_the_last_step(self, db, queue_job):
        job_id = queue_job(count=200, max_attempts=2)
        lose(db, claim(db, job_id))
        split(db, claim(db, job_id))
        for _ in range(2):
            end(db, claim(db))
        lose(db, claim(db, job_id))
        assert job(db, job_id).state == "queued"
        end(db, claim(db, job_id))


class TestEnd:
    def test_the_last_shard_wakes_the_capture(self, db, start):
        parent = start()
        end(db, claim(db))
        assert job(db, parent).state == "waiting"
        end(db, claim(db))
        assert job(db, parent).state == "queued"
        assert claim(db).job_id == parent

    def test_two_last_ones_at_the_same_moment(self, db, start):
        for _ in range(5):
            parent = start()
            held, together = [claim(db), claim(db)], Barrier(2)

            def end_together(mine, together=together):
                together.wait()
                end(db, mine)

            threads = [Thread(target=end_together, args=(mine,)) for mine in held]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert job(db, parent).state == "queued"
            end(db, claim(db, parent))

    def test_a_lost_shard_is_done_again_alone(self, db, start):
        parent = start()
        one, other = claim(db), claim(db)
        lose(db, one)
        assert states(db, parent) == ["queued", "running"]
        end(db, other)
        again = claim(db)
        assert (again.job_id, again.attempt) == (one.job_id, 2)
        end(db, again)
        assert job(db, parent).state == "queued"
        assert [child.attempt for child in children(db, parent)] == [2, 1]

    def test_one_that_cannot_be_made_stops_the_others(self, db, start):
        parent = start()
        one, other = claim(db), claim(db)
        end(db, one, "failed", error={"type": "diverged", "title": "t", "detail": "d"})
        assert states(db, parent) == ["failed", "running"]
        with db.read() as session:
            notes = session.scalars(select(Event).where(Event.job_id == other.job_id, Event.kind == "note")).all()
        assert f"{one.job_id}, another shard" in notes[0].data["text"]
        assert record(db, other, 60, Reports()).cancel_requested
        end(db, other, "cancelled")
        assert job(db, parent).state == "queued"

    def test_those_of_another_capture_go_on(self, db, start):
        parent, bystander = start(), start()
        end(db, claim(db), "failed", error={"type": "diverged", "title": "t", "detail": "d"})
        assert states(db, parent) == ["failed", "cancelled"]
        assert states(db, bystander) == ["queued", "queued"]

    def test_seconds_are_those_in_which_something_was_made(self, db, start):
        parent = start()
        for _ in range(2):
            end(db, claim(db))
        one, other = children(db, parent)
        with db.write() as session:
            for child, began, ended in ((one, 100, 110), (other, 105, 120)):
                spans = update(Attempt).where(Attempt.job_id == child.id)
                session.execute(spans.values(started_at=began, ended_at=ended))
        with db.read() as session:
            assert shards.seconds(session, parent) == 20
        with db.write() as session:
            session.execute(update(Attempt).where(Attempt.job_id == one.id).values(started_at=0, ended_at=7))
        with db.read() as session:
            assert shards.seconds(session, parent) == 22


class TestProgress:
    def test_it_is_that_of_the_shards_together(self, db, start):
        parent = start()
        one, other = claim(db), claim(db)
        for held, step, rate in ((one, 64, 10.0), (other, 36, 15.0)):
            record(db, held, 60, Reports(progress={"fraction": 0.5, "step": step, "steps": 1, "rate": rate}))
        parents.look_after(db)
        assert job(db, parent).progress == {
            "fraction": 0.5,
            "step": 100,
            "steps": 200,
            "unit": "cards",
            "rate": 25.0,
            "eta_seconds": 4.0,
        }

    def test_a_small_step_is_not_worth_an_event(self, db, start):
        parent = start()
        held = claim(db)
        seq = job(db, parent).seq
        for step in (100, 100, 101):
            record(db, held, 60, Reports(progress={"fraction": 0.5, "step": step}))
            parents.look_after(db)
        assert job(db, parent).seq == seq + 2  # 101 of 200 is half a percent more

    def test_what_has_ended_counts_in_full(self, db, start):
        parent = start()
        end(db, claim(db))
        assert job(db, parent).progress["step"] == 128


class TestCancelAndRetry:
    def test_a_cancel_reaches_all_shards(self, db, start):
        parent = start()
        held = claim(db)
        cancel(db, parent)
        assert (job(db, parent).state, states(db, parent)) == ("cancelled", ["running", "cancelled"])
        assert record(db, held, 60, Reports()).cancel_requested
        end(db, held, "cancelled")
        assert job(db, parent).state == "cancelled"

    def test_a_shard_is_not_cancelled_or_retried_on_its_own(self, db, start):
        parent = start()
        one, _ = children(db, parent)
        with pytest.raises(Conflict, match=f"a shard of {parent}: cancel that one"):
            cancel(db, one.id)
        cancel(db, parent)
        with pytest.raises(Conflict, match=f"a shard of {parent}: retry that one"):
            retry(db, one.id)

    def test_a_retry_does_the_rest(self, db, start):
        parent = start()
        end(db, claim(db))
        held = claim(db)
        cancel(db, parent)
        with pytest.raises(Conflict, match="still being stopped"):
            retry(db, parent)
        end(db, held, "cancelled")
        retry(db, parent)
        assert (job(db, parent).state, states(db, parent)) == ("waiting", ["succeeded", "queued"])
        assert claim(db).job_id == held.job_id

    def test_a_last_step_that_failed_is_done_again_alone(self, db, start):
        parent = start()
        for _ in range(2):
            end(db, claim(db))
        end(db, claim(db, parent), "failed", error={"type": "disk-full", "title": "t", "detail": "d"})
        retry(db, parent)
        assert (job(db, parent).state, states(db, parent)) == ("queued", ["succeeded"] * 2)

    def test_where_shards_would_not_go_together_it_begins_anew(self, db, start):
        parent = start()
        error = {"type": lifecycle.OTHER_MAKE, "title": "t", "detail": "d"}
        end(db, claim(db), "failed", error=error)
        end(db, claim(db, parent), "failed", error=error)
        retry(db, parent)
        assert (job(db, parent).state, children(db, parent)) == ("queued", [])
        assert split(db, claim(db, parent))

    def test_one_that_was_never_split_goes_to_the_queue(self, db, queue_job):
        job_id = queue_job(count=200)
        end(db, claim(db, job_id), "failed", error={"type": "t", "title": "t", "detail": "d"})
        retry(db, job_id)
        assert job(db, job_id).state == "queued"


class TestParts:
    def keep(self, db, held, digest):
        kept = Kept(digest * 64, 5)
        announce(db, DEFAULT_TENANT, kept)
        with db.write() as session:
            lifecycle.settle(session, held, "succeeded")
            part = Product("cards.npy", "application/octet-stream", kept)
            artifacts.record_products(session, held.job_id, held.attempt, [part])

    def made(self, db) -> list[str]:
        with db.read() as session:
            return list(session.scalars(select(Artifact.name)))

    def test_they_go_once_the_set_is_whole(self, db, start):
        parent = start()
        for digest in "ab":
            self.keep(db, claim(db), digest)
        held = claim(db, parent)
        assert self.made(db) == ["cards.npy"] * 2
        with db.write() as session:
            lifecycle.settle(session, held, "succeeded")
            shards.forget_parts(session, held)
        assert self.made(db) == []

    def test_they_go_with_the_job(self, db, start):
        parent = start()
        self.keep(db, claim(db), "a")
        cancel(db, parent)
        with db.write() as session:
            assert compare.delete(session, session.get_one(Job, parent)) == {"a" * 64}
        assert (self.made(db), children(db, parent)) == ([], [])


class TestWays:
    def ways(self, db, queue_job, **changes) -> int:
        held = claim(db, queue_job(count=200, **changes))
        return shards.ways(db, held, CaptureSpec.model_validate(held.spec))

    def test_as_many_as_asked_for_whoever_is_there(self, db, queue_job):
        assert [self.ways(db, queue_job, shards=number) for number in (1, 2, 7)] == [1, 2, 7]

    def test_auto_counts_itself_and_those_that_have_nothing_to_do(self, db, queue_job):
        assert self.ways(db, queue_job) == 1
        for _ in range(5):
            workers.register(db, "cpu")
        workers.register(db, "gpu")
        assert self.ways(db, queue_job) == 1 + 3  # two run by now

    def test_a_quota_holds(self, db, queue_job):
        with db.write() as session:
            ring = Keyring(db, "secret")
            may = {"name": "k", "scopes": ["write"], "retain_data": True, "max_unfinished_jobs": 4}
            key_id = ring.add(session, DEFAULT_TENANT, "t" * 40, **may).id
        held = claim(db, queue_job(count=200, shards=9))
        with db.write() as session:
            session.execute(update(Job).values(key_id=key_id))
        assert shards.ways(db, held, CaptureSpec.model_validate(held.spec)) == 3
        with db.write() as session:
            session.execute(update(ApiKey).values(max_unfinished_jobs=None))
        assert shards.ways(db, held, CaptureSpec.model_validate(held.spec)) == 9
