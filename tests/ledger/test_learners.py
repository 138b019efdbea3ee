import pytest
from keeping import age, dataset_row, has_bytes, keep_model, write_file
from sqlalchemy import select

from flashcards.contract.learners import LearnerSpec
from flashcards.contract.results import LearnResult, Memory, TaskMeasure
from flashcards.contract.specs import job_spec
from ledger import admission, artifacts, blobs, jobs, learners, lifecycle, matrix, outcomes, storage
from ledger.artifacts import Product
from ledger.collector import Collector
from ledger.errors import Conflict, NotFound, Unfit
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Dataset, Job, Learner, Model, Version
from ledger.versions import chain

TRAIN = {"count": 10, "shape": "8x8x1", "dtype": "uint8", "low": 0, "high": 255}


@pytest.fixture
def images(db) -> str:
    row = dataset_row("0" * 64, name="digits", splits={"train": TRAIN})
    with db.write() as session:
        session.add(row)
    return row.id


@pytest.fixture
def pupil(db) -> str:
    with db.write() as session:
        return learners.create(session, DEFAULT_TENANT, LearnerSpec(architecture="blk_2_fil_4"))[0].id


def head(db, learner_id) -> Learner:
    with db.read() as session:
        return learners.find(session, DEFAULT_TENANT, learner_id)


def table(db, learner_id):
    with db.read() as session:
        row = session.get_one(Learner, learner_id)
        return matrix.assemble(row, chain(session, row))


@pytest.fixture
def post(db, images):
    """A queued task."""

    def post(learner_id: str, **fields) -> str:
        spec = job_spec.validate_python({"kind": "learn", "learner": learner_id, "dataset": images, **fields})
        with db.write() as session:
            admitted = admission.admit(session, Settings(), DEFAULT_TENANT, spec)
            return jobs.create(session, DEFAULT_TENANT, spec, admitted).id

    return post


@pytest.fixture
def start(db):
    """Claimed, and told which version it starts from."""

    def start(job_id: str):
        held = lifecycle.claim(db, "cpu", "worker_a", 60, job_id)
        with db.write() as session:
            learners.begin(session, held, job_spec.validate_python(held.spec))
        return held

    return start


@pytest.fixture
def finish(db, store, tmp_path):
    """As a worker ends a task that gave these errors."""

    def finish(held, *errors: float, before: float | None = None, random: float | None = 0.5) -> dict:
        names = ["model.safetensors", *(f"capsule-{task}.safetensors" for task in range(1, len(errors) + 1))]
        files = []
        for name in names:
            kept, path = write_file(tmp_path, f"{name} of {held.job_id}".encode())
            blobs.put(db, store, DEFAULT_TENANT, kept, path)
            files.append(Product(name, "x/y", kept))
        said = told(errors, before, random).model_dump(mode="json")
        with blobs.referring(db, store, DEFAULT_TENANT, [file.kept for file in files]) as session:
            assert outcomes.succeed(session, held, said, files)
        with db.read() as session:
            return session.get_one(Job, held.job_id).result

    return finish


def told(errors, before, random) -> LearnResult:
    return LearnResult(
        task=len(errors),
        images=9,
        measures=[TaskMeasure(task=f"task {n}", mae=error, psnr=20.0) for n, error in enumerate(errors)],
        before=None if before is None else TaskMeasure(task="new", mae=before),
        random_mae=random,
        memory=Memory(network=100, capsules=7),
        epochs=1,
        best_epoch=1,
        steps=1,
        stopped_early=False,
        train_mae=0.1,
        validation_mae=0.1,
        constant_mae=0.2,
        parameters=25,
        backend="cpu",
        threads=1,
        seconds=2.0,
        images_per_second=5.0,
    )


class TestCreation:
    def test_from_an_architecture_it_has_no_version(self, db, pupil):
        row = head(db, pupil)
        assert (row.version, row.input, row.name, row.range) == (None, None, "blk_2_fil_4", [0, 1])

    def test_from_a_model_it_knows_what_the_model_knows(self, db, store, tmp_path):
        model_id, digest = keep_model(db, store, tmp_path, b"weights")
        with db.write() as session:
            model = session.get_one(Model, model_id)
            model.architecture = {"family": "blk", "blocks": 2, "filters": 4}
            model.capsule_digest, model.capsule = "c" * 64, {"digest": "c" * 64, "size": 5}
        with db.write() as session:
            row, kept = learners.create(session, DEFAULT_TENANT, LearnerSpec(model=model_id))
        assert (row.version, row.input) == (0, "8x8x1")
        assert [each.digest for each in kept] == [digest, "c" * 64]
        with db.read() as session:
            first = session.get_one(Version, (row.id, 0))
            assert (first.task, first.digest, first.memory["capsules"]) == ("net", digest, 5)
            assert learners.capsules(session, row.id, [0])[0][1].digest == "c" * 64

    def test_another_tenant_finds_neither_model_nor_learner(self, db, store, tmp_path, pupil):
        model_id, _ = keep_model(db, store, tmp_path, b"weights")
        with db.write() as session, pytest.raises(Unfit):
            learners.create(session, "somebody", LearnerSpec(model=model_id))
        with db.read() as session, pytest.raises(NotFound):
            learners.find(session, "somebody", pupil)


class TestVersions:
    def test_a_task_makes_one_and_moves_the_head(self, db, pupil, post, start, finish):
        result = finish(start(post(pupil)), 0.1)
        assert (result["learner"], result["version"], result["base_version"]) == (pupil, 1, None)
        row = head(db, pupil)
        assert (row.version, row.input) == (1, "8x8x1")
        with db.read() as session:
            version = session.get_one(Version, (pupil, 1))
        assert (version.parent, version.task, version.repeated) == (None, "digits", False)

    def test_the_same_images_again_are_said_to_be_so(self, db, pupil, post, start, finish):
        finish(start(post(pupil)), 0.1)
        finish(start(post(pupil, name="again")), 0.1, 0.1)
        with db.read() as session:
            version = session.get_one(Version, (pupil, 2))
        assert (version.parent, version.task, version.repeated) == (1, "again", True)

    @pytest.mark.parametrize("digest", ["0" * 64, "1" * 64])
    def test_so_are_the_same_images_under_another_name(self, db, pupil, post, start, finish, digest):
        other = dataset_row(digest, name="uploaded again", splits={"train": TRAIN})
        with db.write() as session:
            session.add(other)
        finish(start(post(pupil)), 0.1)
        finish(start(post(pupil, dataset=other.id)), 0.1, 0.1)
        with db.read() as session:
            assert session.get_one(Version, (pupil, 2)).repeated == (digest == "0" * 64)

    @pytest.mark.parametrize("state", ["failed", "cancelled"])
    def test_a_task_that_went_wrong_leaves_the_learner_where_it_was(self, db, pupil, post, start, finish, state):
        finish(start(post(pupil)), 0.1)
        held = start(post(pupil))
        with db.write() as session:
            outcomes.end(session, held, state, [])
        assert head(db, pupil).version == 1

    def test_a_head_that_moved_meanwhile_is_not_overwritten(self, db, pupil, post, start, finish):
        finish(start(post(pupil)), 0.1)
        finish(start(post(pupil)), 0.1, 0.1)
        held = start(post(pupil))
        with db.write() as session:
            session.get_one(Learner, pupil).version = 1
        assert finish(held, 0.1, 0.1, 0.1) is None
        with db.read() as session:
            job = session.get_one(Job, held.job_id)
            assert (job.state, job.error["type"]) == ("failed", "learner-moved-on")
            assert len(session.scalars(select(Version)).all()) == 2

    def test_the_files_are_needed_as_long_as_the_learner_is_there(self, db, store, pupil, post, start, finish):
        held = start(post(pupil))
        finish(held, 0.1)
        with db.write() as session:
            version = session.get_one(Version, (pupil, 1))
            capsule = learners.capsules(session, pupil, [1])[1][1].digest
            session.delete(session.get_one(Job, held.job_id))
        digests = [version.digest, capsule]
        for digest in digests:
            age(db, digest, 100)
        collector = Collector(db, store, grace_seconds=10)
        assert collector.collect() == 0
        with db.read() as session:
            names = storage.keepers(session, Settings(), DEFAULT_TENANT, digests)
        assert names[capsule].names == [f"{pupil}/versions/1/capsules/1"]
        with db.write() as session:
            assert learners.delete(session, DEFAULT_TENANT, pupil) == set(digests)
        assert collector.collect() == 2
        assert not any(has_bytes(store, digest) for digest in digests)


class TestTheBeginningOfATask:
    def test_the_version_that_was_asked_for_must_be_the_newest(self, db, pupil, post, start, finish):
        finish(start(post(pupil)), 0.1)
        waiting = post(pupil, base_version=1)
        held = lifecycle.claim(db, "cpu", "worker_a", 60, waiting)
        with db.write() as session:
            session.get_one(Learner, pupil).version = None
        with db.write() as session, pytest.raises(learners.MovedOn, match="version 1, and the newest is None"):
            learners.begin(session, held, job_spec.validate_python(held.spec))

    def test_a_resume_point_goes_with_the_version_it_came_from(self, db, pupil, post, start, finish, tmp_path):
        first = start(post(pupil))
        kept, _ = write_file(tmp_path, b"weights on their way")
        with db.write() as session:
            artifacts.record_resume_point(session, first.job_id, 1, Product("resume-1", "x/y", kept))
            lifecycle.release(session, first, "its worker is closing")
        start(first.job_id)
        assert resume_points(db, first.job_id) == ["resume-1"], "the same version: it goes on from there"
        with db.write() as session:
            held = lifecycle.Claim(first.job_id, DEFAULT_TENANT, 2, first.spec)
            outcomes.end(session, held, "failed", [])
        finish(start(post(pupil)), 0.1)
        with db.write() as session:
            lifecycle.retry(session, DEFAULT_TENANT, first.job_id)
        start(first.job_id)
        assert resume_points(db, first.job_id) == []

    def test_images_that_no_longer_fit_are_refused_then(self, db, pupil, post, start, finish):
        other = dataset_row("1" * 64, splits={"train": {**TRAIN, "shape": "16x16x1"}})
        with db.write() as session:
            session.add(other)
        first, second = post(pupil), post(pupil, dataset=other.id)
        finish(start(first), 0.1)
        with pytest.raises(Unfit, match="the learner takes images of 8x8x1"):
            start(second)


def resume_points(db, job_id) -> list[str]:
    with db.read() as session:
        return [point.name for point in artifacts.resume_points(session, job_id)]


class TestRollback:
    @pytest.fixture
    def old_hand(self, pupil, post, start, finish) -> str:
        finish(start(post(pupil)), 0.1)
        finish(start(post(pupil)), 0.2, 0.1, before=0.4)
        return pupil

    def roll_back(self, db, learner_id, number):
        with db.write() as session:
            learners.roll_back(session, DEFAULT_TENANT, learner_id, number)

    def test_the_next_version_has_the_older_one_as_its_parent(self, db, old_hand, post, start, finish):
        self.roll_back(db, old_hand, 1)
        assert finish(start(post(old_hand)), 0.1, 0.3)["version"] == 3
        with db.read() as session:
            learner = session.get_one(Learner, old_hand)
            assert [version.number for version in chain(session, learner)] == [1, 3]
        self.roll_back(db, old_hand, 2)
        assert table(db, old_hand).versions == [1, 2]

    def test_not_to_what_is_not_there(self, db, old_hand):
        with pytest.raises(Unfit, match="no version 7"):
            self.roll_back(db, old_hand, 7)

    def test_not_while_a_task_is_unfinished(self, db, old_hand, post):
        post(old_hand)
        with pytest.raises(Conflict, match="has not ended"):
            self.roll_back(db, old_hand, 1)
        with db.write() as session, pytest.raises(Conflict):
            learners.delete(session, DEFAULT_TENANT, old_hand)


class TestMatrix:
    def test_transfer_forward_and_backward(self, db, pupil, post, start, finish):
        finish(start(post(pupil)), 0.10, random=0.9)
        finish(start(post(pupil)), 0.16, 0.20, before=0.5, random=0.8)
        finish(start(post(pupil)), 0.20, 0.18, 0.30, before=0.4, random=0.6)
        found = table(db, pupil)
        assert found.matrix == [[0.10, None, None], [0.16, 0.20, None], [0.20, 0.18, 0.30]]
        assert found.bwt == pytest.approx(((0.10 - 0.20) + (0.20 - 0.18)) / 2)
        assert found.fwt == pytest.approx(((0.8 - 0.5) + (0.6 - 0.4)) / 2)
        assert found.average == pytest.approx((0.20 + 0.18 + 0.30) / 3)
        assert (found.versions, found.seconds, found.random) == ([1, 2, 3], 6.0, [0.9, 0.8, 0.6])

    def test_where_a_value_is_missing_there_is_no_mean(self, db, pupil, post, start, finish):
        finish(start(post(pupil)), 0.1)
        finish(start(post(pupil)), None, 0.2, before=0.5, random=None)
        found = table(db, pupil)
        assert (found.bwt, found.fwt, found.average) == (None, None, None)

    def test_one_task_forgets_nothing(self, db, pupil, post, start, finish):
        finish(start(post(pupil)), 0.1)
        found = table(db, pupil)
        assert (found.bwt, found.fwt, found.average) == (None, None, 0.1)


def test_images_that_are_not_to_be_kept_go_when_the_task_has_ended(db, store, pupil, images, post, start, finish):
    from ledger import retention

    with db.write() as session:
        session.get_one(Dataset, images).retain = False
    with pytest.raises(Unfit, match="keeps images of earlier tasks"):
        post(pupil, strategy={"kind": "joint"})
    held = start(post(pupil))
    retention.sweep(db, store)
    finish(held, 0.1)
    assert retention.sweep(db, store) == 1
    with db.read() as session:
        assert session.get(Dataset, images) is None
        assert session.get_one(Version, (pupil, 1)).dataset_id == images
