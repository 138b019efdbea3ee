"""The helper that looks for unsound records finds them: each of these is one thing that must never be."""

import hashlib

import pytest
from soundness import assert_ledger_sound, assert_work_tidy
from sqlalchemy import delete, update

from flashcards.contract.specs import job_spec
from ledger import blobs, events, jobs, lifecycle, outcomes, workers
from ledger.admission import Admitted
from ledger.artifacts import Product
from ledger.db import Database
from ledger.ids import new_id
from ledger.migrate import migrate
from ledger.store import Store, hash_file
from ledger.tables import DEFAULT_TENANT, Artifact, Attempt, Blob, Dataset, Event, Job, Model, Worker

MADE = ("capsule.safetensors", "model.safetensors", "reconstructions.png")
TRAINED = {
    "epochs": 1,
    "best_epoch": 1,
    "steps": 1,
    "stopped_early": False,
    "train_mae": 0.1,
    "validation_mae": 0.1,
    "constant_mae": 0.2,
    "parameters": 7,
    "images": 9,
    "backend": "cpu",
    "threads": 1,
    "seconds": 1.0,
    "images_per_second": 9.0,
}


@pytest.fixture
def db(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    migrate(database)
    yield database
    database.close()


@pytest.fixture
def store(tmp_path):
    return Store(f"file://{tmp_path / 'store'}")


@pytest.fixture
def trained(db, store, tmp_path) -> str:
    """A training that succeeded at its second attempt, with its files."""
    dataset = new_id("dataset")
    spec = job_spec.validate_python({"kind": "train", "dataset": dataset, "architecture": "blk_2_fil_4"})
    with db.write() as session:
        splits = {"train": {"shape": "8x8x1"}}
        row = Dataset(id=dataset, tenant=DEFAULT_TENANT, name="x", digest="0", size=1, format="npz", splits=splits)
        session.add(row)
        job_id = jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue="cpu", inputs=[dataset])).id
    first = lifecycle.claim(db, "cpu", "worker_a", 60, job_id)
    with db.write() as session:
        lifecycle.lose(session, job_id, first.attempt, "bad luck")
    claim = lifecycle.claim(db, "cpu", "worker_a", 60, job_id)
    jobs.record(db, claim, 60, jobs.Reports(progress={"fraction": 1.0}))
    products = [made(db, store, tmp_path, name) for name in MADE]
    with db.write() as session:
        assert outcomes.succeed(session, claim, TRAINED, products)
    return job_id


def made(db, store, folder, name: str) -> Product:
    path = folder / name
    path.write_text(f"the bytes of {name}")
    kept = hash_file(path)
    blobs.put(db, store, DEFAULT_TENANT, kept, path)
    return Product(name, "application/octet-stream", kept)


def test_a_good_record_is_sound(db, store, trained):
    assert assert_ledger_sound(db, store) == 1


def forget_an_event(session, job_id):
    session.execute(delete(Event).where(Event.job_id == job_id, Event.seq == 3))


def jump_from_queued_to_succeeded(session, job_id):
    session.execute(update(Event).where(Event.job_id == job_id, Event.seq == 4).values(kind="note", data={"text": ""}))


def forget_the_end(session, job_id):
    session.execute(update(Job).where(Job.id == job_id).values(ended_at=None))


def keep_a_lease(session, job_id):
    session.execute(update(Job).where(Job.id == job_id).values(lease_until=1.0))


def leave_an_attempt_under_way(session, job_id):
    session.execute(update(Attempt).where(Attempt.job_id == job_id, Attempt.number == 1).values(ended_at=None))


def let_two_attempts_succeed(session, job_id):
    session.execute(update(Attempt).where(Attempt.job_id == job_id).values(outcome="succeeded"))


def lose_an_attempt(session, job_id):
    session.execute(delete(Attempt).where(Attempt.job_id == job_id, Attempt.number == 1))


def hear_a_runner_after_the_end(session, job_id):
    events.append(session, job_id, [("progress", {"fraction": 0.1})])


def hear_an_earlier_attempt(session, job_id):
    session.execute(update(Event).where(Event.job_id == job_id, Event.seq == 5).values(attempt=1))


def lose_a_product(session, job_id):
    session.execute(delete(Artifact).where(Artifact.job_id == job_id, Artifact.name == "model.safetensors"))


def mix_products_of_two_attempts(session, job_id):
    one = (Artifact.job_id == job_id, Artifact.name == "model.safetensors")
    session.execute(update(Artifact).where(*one).values(attempt=1))


def lose_a_blob(session, job_id):
    digest = hashlib.sha256(b"the bytes of model.safetensors").hexdigest()
    session.execute(delete(Blob).where(Blob.digest == digest))


def lose_the_model(session, job_id):
    session.execute(delete(Model).where(Model.job_id == job_id))


def make_the_model_twice(session, job_id):
    first = session.query(Model).where(Model.job_id == job_id).one()
    columns = {column.key: getattr(first, column.key) for column in Model.__table__.columns}
    session.add(Model(**{**columns, "id": new_id("model")}))


def name_bytes_that_are_not_there(session, job_id):
    session.add(Blob(tenant=DEFAULT_TENANT, digest="f" * 64, size=5))
    session.flush()
    session.execute(update(Artifact).where(Artifact.job_id == job_id).values(digest="f" * 64, size=5))


@pytest.mark.parametrize(
    "spoil",
    [
        forget_an_event,
        jump_from_queued_to_succeeded,
        forget_the_end,
        keep_a_lease,
        leave_an_attempt_under_way,
        let_two_attempts_succeed,
        lose_an_attempt,
        hear_a_runner_after_the_end,
        hear_an_earlier_attempt,
        lose_a_product,
        mix_products_of_two_attempts,
        lose_a_blob,
        lose_the_model,
        make_the_model_twice,
        name_bytes_that_are_not_there,
    ],
)
def test_an_unsound_record_is_found(db, store, trained, spoil):
    with db.write() as session:
        spoil(session, trained)
    with pytest.raises(AssertionError):
        assert_ledger_sound(db, store)


def test_bytes_that_were_changed_are_found(db, store, trained, tmp_path):
    digest = hashlib.sha256(b"the bytes of model.safetensors").hexdigest()
    path = tmp_path / "store" / DEFAULT_TENANT / digest
    path.chmod(0o644)
    path.write_text("THE BYTES OF model.safetensors")
    with pytest.raises(AssertionError, match="holds other bytes"):
        assert_ledger_sound(db, store)


@pytest.mark.parametrize("pid", [None, 4194305])  # unknown; past the largest process id that Linux gives
def test_a_folder_of_a_dead_worker_is_found(db, tmp_path, pid):
    work = tmp_path / "work"
    (work / workers.register(db, "cpu")).mkdir(parents=True)
    assert_work_tidy(db, work)
    (work / "worker_gone").mkdir()
    if pid is not None:
        with db.write() as session:
            session.add(Worker(id="worker_gone", queue="cpu", host="here", pid=pid))
    with pytest.raises(AssertionError, match="left by a worker that is gone"):
        assert_work_tidy(db, work)
