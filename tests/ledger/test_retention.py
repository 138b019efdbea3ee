from dataclasses import replace

import pytest
from keeping import has_bytes, has_row, keep_dataset, model_row, write_file
from sqlalchemy import select, update

from flashcards.contract.specs import job_spec
from ledger import artifacts, blobs, events, jobs, lifecycle, outcomes, retention
from ledger.admission import Admitted
from ledger.artifacts import Product
from ledger.clock import now
from ledger.collector import Collector
from ledger.store import Kept, Store
from ledger.tables import DEFAULT_TENANT, Artifact, Dataset, Job

DAY = 86400


@pytest.fixture
def images(db, store, tmp_path):
    return keep_dataset(db, store, tmp_path, b"images", retain=False)


@pytest.fixture
def train(db):
    """A queued training on that dataset."""

    def train(dataset_id: str) -> str:
        spec = job_spec.validate_python({"kind": "train", "dataset": dataset_id})
        with db.write() as session:
            return jobs.create(session, DEFAULT_TENANT, spec, Admitted("cpu", [dataset_id])).id

    return train


@pytest.fixture
def finish(db, store, tmp_path):
    """Ends a job with a picture of its data, its weights and a resume point; gives their digests."""

    def finish(job_id: str, state: str = "failed") -> dict[str, str]:
        held = lifecycle.claim(db, "cpu", "worker_a", 60, job_id)
        made = {}
        for name, shows in (("picture.png", True), ("weights", False), ("point", False)):
            kept, path = write_file(tmp_path, f"{name} of {job_id}".encode())
            blobs.put(db, store, DEFAULT_TENANT, kept, path)
            made[name] = Product(name, "x/y", kept, shows)
        with blobs.referring(db, store, DEFAULT_TENANT, [product.kept for product in made.values()]) as session:
            artifacts.record_resume_point(session, job_id, 1, made["point"])
            session.add(model_row(made["weights"].kept.digest))
            assert outcomes.end(session, held, state, [made["picture.png"], made["weights"]])
        return {name: product.kept.digest for name, product in made.items()}

    return finish


def is_there(db, dataset_id: str) -> bool:
    with db.read() as session:
        return session.get(Dataset, dataset_id) is not None


def test_a_dataset_that_is_not_kept_goes_with_all_that_shows_it(db, store, images, train, finish):
    id, digest = images
    made = finish(train(id))
    assert retention.sweep(db, store) == 1
    assert not is_there(db, id)
    gone = [digest, made["picture.png"], made["point"]]
    assert [each for each in gone if has_row(db, each) or has_bytes(store, each)] == []
    assert has_bytes(store, made["weights"]), "what was learnt stays"
    assert retention.sweep(db, store) == 0


def test_its_jobs_say_so(db, store, images, train, finish):
    job_id = train(images[0])
    finish(job_id)
    retention.sweep(db, store)
    with db.read() as session:
        (note,) = events.of_kind(session, job_id, "note")
        names = session.scalars(select(Artifact.name).where(Artifact.job_id == job_id)).all()
    assert note.data["text"] == f"{images[0]} and its file were deleted: its key keeps no data"
    assert names == ["weights"]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_it_stays_while_an_unfinished_job_reads_it(db, store, images, train, finish, state):
    id, digest = images
    finish(train(id))
    other = train(id)
    if state == "running":
        lifecycle.claim(db, "cpu", "worker_a", 60, other)
    assert retention.sweep(db, store) == 0
    assert has_bytes(store, digest)


def test_it_goes_when_its_only_job_was_cancelled_in_the_queue(db, store, images, train):
    job_id = train(images[0])
    with db.write() as session:
        lifecycle.request_cancel(session, DEFAULT_TENANT, job_id)
    assert retention.sweep(db, store) == 1


def test_a_dataset_that_is_kept_stays(db, store, tmp_path, train, finish):
    id, digest = keep_dataset(db, store, tmp_path, b"images")
    made = finish(train(id), "succeeded")
    assert retention.sweep(db, store) == 0
    assert is_there(db, id)
    assert has_bytes(store, digest)
    assert has_bytes(store, made["picture.png"])


@pytest.mark.parametrize(("hours", "goes"), [(-1, True), (1, False)])
def test_one_that_is_never_used_goes_when_its_time_is_over(db, store, images, hours, goes):
    with db.write() as session:
        session.execute(update(Dataset).values(expires_at=now() + hours * 3600))
    assert retention.sweep(db, store) == goes
    assert is_there(db, images[0]) != goes
    assert has_bytes(store, images[1]) != goes


def test_the_same_bytes_under_a_dataset_that_is_kept_stay(db, store, tmp_path, images, train, finish):
    kept_id, digest = keep_dataset(db, store, tmp_path, b"images")
    assert digest == images[1]
    finish(train(images[0]))
    assert retention.sweep(db, store) == 1
    assert is_there(db, kept_id)
    assert has_bytes(store, digest)


class Killed(Store):
    def delete(self, tenant, digest):
        raise KeyboardInterrupt


def test_a_kill_in_between_loses_nothing(db, store, tmp_path, images, train, finish):
    finish(train(images[0]))
    with pytest.raises(KeyboardInterrupt):
        retention.sweep(db, Killed(f"file://{tmp_path / 'store'}"))
    assert not is_there(db, images[0])
    assert has_bytes(store, images[1])
    Collector(db, store, 3600).collect()
    assert not has_bytes(store, images[1]), "without waiting for the grace"


def resume_points(db, job_id: str) -> int:
    with db.read() as session:
        return len(artifacts.resume_points(session, job_id))


def end_ago(db, job_id: str, days: float) -> None:
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(ended_at=now() - days * DAY))


def test_resume_points_of_ended_jobs_go_in_time(db, store, tmp_path, train, finish):
    id, _ = keep_dataset(db, store, tmp_path, b"images")
    old, young = train(id), train(id)
    finish(old)
    finish(young)
    end_ago(db, old, 8)
    end_ago(db, young, 6)
    assert retention.forget_resume_points(db, 7) == 1
    assert (resume_points(db, old), resume_points(db, young)) == (0, 1)


def test_those_of_a_succeeded_job_go_when_it_settles(db, queue_job):
    held = lifecycle.claim(db, "cpu", "worker_a", 60, queue_job())
    with db.write() as session:
        point = Product("00000010.safetensors", "x/y", Kept("a" * 64, 1))
        artifacts.record_resume_point(session, held.job_id, 1, point)
    noop = replace(held, spec={"kind": "noop"})
    with db.write() as session:
        assert outcomes.succeed(session, noop, {"worker": "worker_a"}, [])
    assert resume_points(db, held.job_id) == 0


def test_those_of_an_unfinished_job_stay(db, store, tmp_path, train, finish):
    id, _ = keep_dataset(db, store, tmp_path, b"images")
    job_id = train(id)
    finish(job_id)
    with db.write() as session:
        lifecycle.retry(session, DEFAULT_TENANT, job_id)
    assert retention.forget_resume_points(db, 0) == 0
    assert resume_points(db, job_id) == 1
