"""A comparison waits for its children, whoever ends when, and comes to its own end in every case."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from keeping import dataset_row
from soundness import assert_ledger_sound
from sqlalchemy import select, update

from flashcards.contract.specs import job_spec
from ledger import admission, compare, events, learners, lifecycle, parents, quota
from ledger.errors import Conflict, TooManyJobs, Unfit
from ledger.keys import Principal
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Event, Job, Learner

TRAIN = {"count": 10, "shape": "8x8x1", "dtype": "uint8", "low": 0, "high": 255}
COLOUR = {**TRAIN, "shape": "8x8x3"}


@pytest.fixture
def images(db):
    def images(**changes) -> str:
        row = dataset_row("0" * 64, **{"splits": {"train": TRAIN}, **changes})
        with db.write() as session:
            session.add(row)
        return row.id

    return images


@pytest.fixture
def asked(images):
    """Two tasks, two strategies, one seed."""

    def asked(**changes):
        body = {
            "kind": "compare",
            "architecture": "blk_1_fil_8",
            "datasets": [images(), images()] if "datasets" not in changes else changes["datasets"],
            "strategies": [{"kind": "naive"}, {"kind": "flashcards"}],
        }
        return job_spec.validate_python({**body, **changes})

    return asked


@pytest.fixture
def start(db, asked):
    def start(**changes) -> str:
        spec = asked(**changes)
        with db.write() as session:
            admitted = admission.admit(session, Settings(), DEFAULT_TENANT, spec)
            return compare.create(session, DEFAULT_TENANT, spec, admitted).id

    return start


@pytest.fixture(autouse=True)
def sound(db):
    yield
    assert_ledger_sound(db)


def job(db, job_id) -> Job:
    with db.read() as session:
        return session.get_one(Job, job_id)


def children(db, parent) -> list[Job]:
    with db.read() as session:
        return list(parents.children(session, parent))


def states(db, parent) -> list[str]:
    return [child.state for child in children(db, parent)]


def claim(db, job_id=None):
    return lifecycle.claim(db, "cpu", "worker_a", 60, job_id)


def end(db, held, state="succeeded", **what):
    with db.write() as session:
        assert lifecycle.settle(session, held, state, **what)


def end_next(db, state="succeeded"):
    held = claim(db)
    end(db, held, state)
    return held


def cancel(db, job_id):
    with db.write() as session:
        lifecycle.request_cancel(session, DEFAULT_TENANT, job_id)


def retry(db, job_id):
    with db.write() as session:
        lifecycle.retry(session, DEFAULT_TENANT, job_id)


def at_once(*verbs):
    together = Barrier(len(verbs))

    def go(verb):
        together.wait()
        verb()

    with ThreadPoolExecutor(len(verbs)) as pool:
        list(pool.map(go, verbs))


class TestCreation:
    def test_a_unit_is_a_learner_with_a_task_for_every_dataset(self, db, start):
        parent = start(seeds=[0, 1])
        assert (job(db, parent).state, states(db, parent)) == ("waiting", ["queued"] * 8)
        units = [(child.spec["strategy"]["kind"], child.spec["seed"]) for child in children(db, parent)][::2]
        assert units == [("naive", 0), ("naive", 1), ("flashcards", 0), ("flashcards", 1)]
        with db.read() as session:
            assert set(session.scalars(select(Learner.compare_id))) == {parent}

    def test_units_run_beside_each_other_and_tasks_of_one_do_not(self, db, start):
        parent = start()
        first, second = claim(db), claim(db)
        assert claim(db) is None
        assert [first.job_id, second.job_id] == [child.id for child in children(db, parent)][::2]

    def test_a_waiting_job_is_not_claimed(self, db, start):
        assert claim(db, start()) is None

    def test_cl_vae_gets_the_vae_of_the_same_size(self, db, start):
        start(strategies=[{"kind": "cl_vae"}, {"kind": "naive"}])
        with db.read() as session:
            rows = session.scalars(select(Learner).order_by(Learner.id)).all()
        assert [row.architecture["family"] for row in rows] == ["vae", "blk"]

    def test_it_counts_with_all_its_children(self, db, start):
        start()
        key = Principal(max_unfinished_jobs=9)
        with db.write() as session:
            quota.check_jobs(session, key, 4)
            with pytest.raises(TooManyJobs, match="5 jobs are queued or running, this makes 5 more"):
                quota.check_jobs(session, key, 5)


class TestAdmission:
    def refused(self, db, spec, retain_data=True) -> Unfit:
        with db.read() as session, pytest.raises(Unfit) as caught:
            admission.admit(session, Settings(), DEFAULT_TENANT, spec, retain_data)
        return caught.value

    def test_all_datasets_have_images_of_one_shape(self, db, asked, images):
        refused = self.refused(db, asked(datasets=[images(), images(splits={"train": COLOUR})]))
        assert refused.field == "datasets"
        assert "8x8x3" in refused.detail

    def test_all_have_something_to_learn_from(self, db, asked, images):
        refused = self.refused(db, asked(datasets=[images(), images(splits={"test": TRAIN})]))
        assert (refused.field, refused.detail) == ("datasets", "the dataset has no train split, only test")

    def test_a_dataset_that_is_not_there(self, db, asked, images):
        assert self.refused(db, asked(datasets=[images(), "dataset_" + "0" * 32])).field == "datasets"

    def test_a_key_that_keeps_no_data_compares_none_that_does(self, db, asked):
        refused = self.refused(db, asked(strategies=[{"kind": "naive"}, {"kind": "joint"}]), retain_data=False)
        assert refused.field == "strategies"

    def test_cl_vae_has_no_twin_of_every_architecture(self, db, asked):
        refused = self.refused(db, asked(architecture="dense_ae_16_4", strategies=[{"kind": "cl_vae"}]))
        assert refused.field == "strategies"

    def test_nobody_else_teaches_its_learners(self, db, start, images):
        parent = start()
        learner = children(db, parent)[0].learner_id
        task = job_spec.validate_python({"kind": "learn", "learner": learner, "dataset": images()})
        assert parent in self.refused(db, task).detail
        with db.write() as session, pytest.raises(Conflict, match="goes with it"):
            learners.delete(session, DEFAULT_TENANT, learner)


class TestEnd:
    def test_the_last_child_wakes_the_parent(self, db, start):
        parent = start()
        for _ in range(3):
            end_next(db)
            assert job(db, parent).state == "waiting"
        end_next(db)
        assert job(db, parent).state == "queued"
        assert claim(db).job_id == parent

    def test_two_last_ones_at_the_same_moment(self, db, start):
        for _ in range(6):
            parent = start()
            for held in [claim(db), claim(db)]:
                end(db, held)
            one, other = claim(db), claim(db)
            at_once(partial(end, db, one), partial(end, db, other))
            assert job(db, parent).state == "queued"
            cancel(db, parent)

    def test_a_lost_worker_is_an_end_too(self, db, start):
        parent = start(max_attempts=1, strategies=[{"kind": "naive"}])
        end_next(db)
        held = claim(db)
        with db.write() as session:
            assert lifecycle.lose(session, held.job_id, held.attempt, "it was killed")
        assert (states(db, parent), job(db, parent).state) == (["succeeded", "failed"], "queued")

    def test_the_reaper_catches_an_end_that_nobody_saw(self, db, start):
        parent = start()
        with db.write() as session:  # as if the parent had been away when its children ended
            session.execute(update(Job).where(Job.id == parent).values(state="running"))
        for _ in range(4):
            end_next(db)
        with db.write() as session:
            session.execute(update(Job).where(Job.id == parent).values(state="waiting"))
        assert parents.look_after(db) == 1
        assert parents.look_after(db) == 0
        assert job(db, parent).state == "queued"


class TestProgress:
    def test_it_is_that_of_the_children_together(self, db, start):
        parent = start()
        end_next(db)
        progress = job(db, parent).progress
        assert (progress["fraction"], progress["step"], progress["steps"]) == (0.25, 1, 4)

    def test_before_the_first_has_ended_those_that_run_say_how_long_it_takes(self, db, start):
        parent = start()
        for fraction, left in ((0.5, 10.0), (0.25, 30.0)):
            told = {"fraction": fraction, "eta_seconds": left}
            with db.write() as session:
                session.execute(update(Job).where(Job.id == claim(db).job_id).values(progress=told))
        parents.look_after(db)
        # Four tasks of 20 and 40 s, 3.25 of them left, two at a time.
        assert job(db, parent).progress["eta_seconds"] == pytest.approx(30 * 3.25 / 2)

    def test_the_reaper_tells_of_those_that_run(self, db, start):
        parent = start()
        end_next(db)
        held = claim(db)
        with db.write() as session:
            session.execute(update(Job).where(Job.id == held.job_id).values(progress={"fraction": 0.5}))
            first = children(db, parent)[0].id
            session.execute(update(Job).where(Job.id == first).values(started_at=Job.ended_at - 8))
        parents.look_after(db)
        parents.look_after(db)
        progress = job(db, parent).progress
        assert progress["fraction"] == pytest.approx(0.375)
        assert progress["eta_seconds"] == pytest.approx(8 * 2.5)
        with db.read() as session:
            told = [event.data["fraction"] for event in events.of_kind(session, parent, "progress")]
        assert told == [0.25, 0.375], "what has not changed is not told again"


class TestFailedUnit:
    def test_what_is_behind_it_is_not_tried(self, db, start):
        parent = start()
        failed = end_next(db, "failed")
        assert states(db, parent) == ["failed", "cancelled", "queued", "queued"]
        behind = children(db, parent)[1].id
        with db.read() as session:
            last = session.scalars(select(Event).where(Event.job_id == behind).order_by(Event.seq.desc())).first()
        assert failed.job_id in last.data["reason"]

    def test_the_others_go_on_and_the_parent_after_them(self, db, start):
        parent = start()
        end_next(db, "failed")
        end_next(db)
        end_next(db)
        assert job(db, parent).state == "queued"

    def test_a_task_that_the_user_cancels_ends_its_unit(self, db, start):
        parent = start(strategies=[{"kind": "naive"}])
        cancel(db, children(db, parent)[0].id)
        assert (states(db, parent), job(db, parent).state) == (["cancelled"] * 2, "queued")


class TestCancel:
    def test_all_that_waits_ends_and_all_that_runs_is_stopped(self, db, start):
        parent = start()
        end_next(db)
        held = claim(db)
        cancel(db, parent)
        assert job(db, parent).state == "cancelled"
        assert states(db, parent) == ["succeeded", "running", "cancelled", "cancelled"]
        with db.write() as session:
            assert lifecycle.renew(session, held, 60).cancel_requested
        end(db, held, "cancelled")
        assert job(db, parent).state == "cancelled"

    def test_a_task_that_ends_at_the_same_moment_is_in_nobodys_way(self, db, start):
        for _ in range(6):
            parent = start()
            one, other = claim(db), claim(db)
            at_once(partial(cancel, db, parent), partial(end, db, one), partial(end, db, other, "failed"))
            assert job(db, parent).state == "cancelled"
            assert "queued" not in states(db, parent)

    def test_one_that_is_given_back_meanwhile_ends_too(self, db, start):
        parent = start()
        held = claim(db)
        cancel(db, parent)
        with db.write() as session:
            lifecycle.release(session, held, "its worker is closing")
        assert states(db, parent) == ["cancelled"] * 4


class TestRetry:
    def test_what_did_not_come_to_its_end_is_done_again(self, db, start):
        parent = start()
        end_next(db)
        end_next(db, "failed")
        cancel(db, parent)
        retry(db, parent)
        assert job(db, parent).state == "waiting"
        assert states(db, parent) == ["succeeded", "queued", "queued", "queued"]
        for _ in range(3):
            end_next(db)
        assert claim(db).job_id == parent

    def test_where_only_the_table_failed_only_the_table_is_made(self, db, start):
        parent = start()
        for _ in range(4):
            end_next(db)
        end(db, claim(db, parent), "failed")
        retry(db, parent)
        assert (job(db, parent).state, states(db, parent)) == ("queued", ["succeeded"] * 4)

    def test_not_while_its_tasks_are_being_stopped(self, db, start):
        parent = start()
        held = claim(db)
        cancel(db, parent)
        with pytest.raises(Conflict, match="still being stopped"), db.write() as session:
            lifecycle.retry(session, DEFAULT_TENANT, parent)
        end(db, held, "cancelled")
        retry(db, parent)
        assert states(db, parent) == ["queued"] * 4

    def test_a_task_is_retried_with_its_parent(self, db, start):
        parent = start()
        failed = end_next(db, "failed")
        with db.write() as session, pytest.raises(Conflict, match=f"task of {parent}: retry that one"):
            lifecycle.retry(session, DEFAULT_TENANT, failed.job_id)


class TestDelete:
    def test_everything_goes_with_it(self, db, start):
        parent = start()
        cancel(db, parent)
        with db.write() as session:
            compare.delete(session, session.get_one(Job, parent))
        with db.read() as session:
            assert not session.scalars(select(Job.id)).all()
            assert not session.scalars(select(Learner.id)).all()

    def test_not_while_a_task_runs(self, db, start):
        parent = start()
        held = claim(db)
        cancel(db, parent)
        with db.write() as session, pytest.raises(Conflict, match="1 of its children"):
            compare.delete(session, session.get_one(Job, parent))
        end(db, held, "cancelled")
