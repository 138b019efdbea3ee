"""What the runner of a task is given, and what a task is told that cannot start."""

import pytest
from keeping import dataset_row, model_row, write_file

from flashcards.contract.learners import LearnerSpec
from flashcards.contract.specs import job_spec
from ledger import blobs, jobs, learners
from ledger.admission import Admitted
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Dataset, Job, Learner, Version, VersionCapsule
from worker.runner import as_work
from worker.staging import stage
from worker.station import Station
from worker.supervisor import Attempt

SPLITS = {"train": {"count": 10, "shape": "8x8x1", "dtype": "uint8", "low": 0, "high": 255}}
MEMORY = {"network": 1}
BLK = {"blocks": 2, "filters": 4}


@pytest.fixture
def station(tmp_path):
    opened = Station(Settings(home=tmp_path / "home"))
    yield opened
    opened.close()


@pytest.fixture
def put(station, tmp_path):
    """A file in the store, by its digest."""

    def put(content: bytes) -> str:
        kept, path = write_file(tmp_path, content)
        blobs.put(station.db, station.store, DEFAULT_TENANT, kept, path)
        return kept.digest

    return put


@pytest.fixture
def push(station, put):
    def push(content: bytes, **changes) -> str:
        row = dataset_row(put(content), name=content.decode(), **{"splits": SPLITS, **changes})
        with station.db.write() as session:
            session.add(row)
        return row.id

    return push


@pytest.fixture
def pupil(station, put, push) -> str:
    """A learner of two tasks. Its second capsule is missing."""
    images = [push(b"first images"), push(b"second images")]
    weights, states = ([put(b"%s %d" % (what, n)) for n in (1, 2)] for what in (b"weights", b"state"))
    kept = put(b"capsule")
    with station.db.write() as session:
        learner, _ = learners.create(session, DEFAULT_TENANT, LearnerSpec(architecture="blk_2_fil_4"))
        learner.input, learner.version = "8x8x1", 2
        for number in (1, 2):
            session.add(
                Version(
                    learner_id=learner.id,
                    number=number,
                    tenant=DEFAULT_TENANT,
                    parent=number - 1 or None,
                    task=f"task {number}",
                    dataset_id=images[number - 1],
                    digest=weights[number - 1],
                    size=9,
                    state_digest=states[number - 1],
                    measures=[{"task": f"task {n}", "mae": 0.1 * n} for n in range(1, number + 1)],
                    recipes=[],
                    memory=MEMORY,
                )
            )
        session.flush()
        capsule = {"learner_id": learner.id, "number": 2, "task": 1, "tenant": DEFAULT_TENANT}
        session.add(VersionCapsule(**capsule, digest=kept, size=7))
    return learner.id


@pytest.fixture
def claim(station):
    def claim(learner_id: str, dataset_id: str, **fields):
        spec = job_spec.validate_python({"kind": "learn", "learner": learner_id, "dataset": dataset_id, **fields})
        with station.db.write() as session:
            jobs.create(session, DEFAULT_TENANT, spec, Admitted("cpu", [learner_id, dataset_id], learner_id))
        return station.claim(None)

    return claim


def test_a_learner_comes_as_it_stands(station, pupil, push, claim, tmp_path):
    held = claim(pupil, push(b"third images"), test_dataset=push(b"test images"))
    work = as_work(stage(station, held, tmp_path / "attempt"))
    assert work.model.path.read_bytes() == b"weights 2"
    assert work.learner.state.read_bytes() == b"state 2"
    assert work.learner.images is None
    assert [task.name for task in work.learner.tasks] == ["task 1", "task 2"]
    assert [task.test.path.read_bytes() for task in work.learner.tasks] == [b"first images", b"second images"]
    assert work.learner.tasks[0].capsule.read_bytes() == b"capsule"
    assert work.learner.tasks[1].capsule is None
    assert [[measure.mae for measure in row] for row in work.learner.measures] == [[0.1], [0.1, 0.2]]
    assert work.dataset.path.read_bytes() == b"third images"
    assert work.test_dataset.path.read_bytes() == b"test images"
    assert (work.spec.name, work.spec.base_version) == ("third images", 2)


@pytest.mark.parametrize("gone", [True, False])
def test_what_was_learnt_may_be_gone_or_about_to_go(station, pupil, push, claim, tmp_path, gone):
    with station.db.write() as session:
        row = session.get_one(Dataset, session.get_one(Version, (pupil, 1)).dataset_id)
        row.retain = False
        if gone:
            session.delete(row)
    work = as_work(stage(station, claim(pupil, push(b"third images")), tmp_path / "attempt"))
    assert [task.test is None for task in work.learner.tasks] == [True, False]


def test_a_model_comes_with_its_probe(station, put, push, claim, tmp_path):
    """As long as nothing was learnt since, its owner's answers are those of the learner."""
    row = model_row(put(b"weights"), probe_digest=put(b"probe"), architecture={"family": "blk", **BLK})
    with station.db.write() as session:
        session.add(row)
        session.flush()
        learner, _ = learners.create(session, DEFAULT_TENANT, LearnerSpec(model=row.id))
    work = as_work(stage(station, claim(learner.id, push(b"images")), tmp_path / "attempt"))
    assert work.model.probe.read_bytes() == b"probe"
    assert not work.model.made_here


def test_the_first_task_begins_with_nothing(station, push, claim, tmp_path):
    with station.db.write() as session:
        learner, _ = learners.create(session, DEFAULT_TENANT, LearnerSpec())
    held = claim(learner.id, push(b"images", splits={"train": {**SPLITS["train"], "shape": "32x32x1"}}))
    work = as_work(stage(station, held, tmp_path / "attempt"))
    assert (work.model, work.learner.tasks, work.learner.measures) == (None, [], [])


@pytest.mark.parametrize(
    ("shape", "base_version", "type", "words"),
    [
        ("16x16x1", None, "unfit-task", "the learner takes images of 8x8x1"),
        ("8x8x1", 1, "learner-moved-on", "version 1, and the newest is 2"),
    ],
)
def test_a_task_that_cannot_start_fails_in_words(station, pupil, push, claim, shape, base_version, type, words):
    images = push(b"third images", splits={"train": {**SPLITS["train"], "shape": shape}})
    held = claim(pupil, images, base_version=base_version)
    Attempt(station, held).run()
    with station.db.read() as session:
        job = session.get_one(Job, held.job_id)
        assert (job.state, job.error["type"]) == ("failed", type)
        assert words in job.error["detail"]
        assert session.get_one(Learner, pupil).version == 2
