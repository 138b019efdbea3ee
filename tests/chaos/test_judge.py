"""The judge of a chaos run complains of what it must complain of."""

import pytest

from flashcards.contract.specs import job_spec
from ledger import jobs, lifecycle
from ledger.admission import Admitted
from ledger.artifacts import Product, record_products
from ledger.db import Database
from ledger.migrate import migrate
from ledger.store import Kept
from ledger.tables import DEFAULT_TENANT
from tests.chaos.judge import Judge
from tests.chaos.state import State, Wanted

GOOD, BAD = "a" * 64, "b" * 64


@pytest.fixture
def db(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    migrate(database)
    yield database
    database.close()


def ended(db, label: str, state: str, digest: str = GOOD, tries: int = 1) -> str:
    """A training on record that ended so."""
    body = {"kind": "train", "dataset": "dataset_" + "0" * 32, "labels": {"chaos": label}}
    spec = job_spec.validate_python(body)
    with db.write() as session:
        job_id = jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue="cpu", inputs=[])).id
    for number in range(1, tries + 1):
        claim = lifecycle.claim(db, "cpu", "worker_a", 60, job_id)
        with db.write() as session:
            if number < tries:
                lifecycle.lose(session, job_id, claim.attempt, "bad luck")
            else:
                lifecycle.settle(session, claim, state)
                product = Product("model.safetensors", "application/octet-stream", Kept(digest, 1))
                record_products(session, job_id, claim.attempt, [product])
    return job_id


def judged(db, *wanted: Wanted) -> tuple[dict, list[str]]:
    state = State("embedded", 1, 1, jobs=list(wanted), expected={"train-0": GOOD})
    complaints: list[str] = []
    return Judge(state, complaints.append).judge(db), complaints


def test_a_job_that_was_resumed_to_the_same_weights_is_well(db):
    wanted = Wanted(0, "train", 0, False, id=ended(db, "0", "succeeded", tries=3))
    told, complaints = judged(db, wanted)
    assert complaints == []
    assert (told["succeeded"], told["resumed_trainings"], told["identical"], told["most_attempts"]) == (1, 1, 1, 3)


def test_a_cancelled_one_is_well_if_that_was_asked(db):
    job_id = ended(db, "0", "cancelled")
    assert judged(db, Wanted(0, "train", 0, True, id=job_id))[1] == []
    assert "it is cancelled" in judged(db, Wanted(0, "train", 0, False, id=job_id))[1][0]


def test_what_must_not_be_is_complained_of(db):
    wanted = [
        Wanted(0, "train", 0, False, id=ended(db, "0", "failed")),
        Wanted(1, "train", 0, False, id=ended(db, "1", "succeeded", BAD, tries=2)),
        Wanted(2, "train", 0, False, id="job_" + "f" * 32),  # accepted, and lost
        Wanted(3, "train", 0, False, id=ended(db, "3", "succeeded")),
    ]
    ended(db, "3", "succeeded")  # one key, two jobs
    ended(db, "9", "succeeded")  # nobody asked for it
    told, complaints = judged(db, *wanted)
    assert told["identical"] == 0
    for words in ("it is failed", "not what an unbroken run gives", "job 2, accepted as", "job 3, accepted as"):
        assert sum(words in complaint for complaint in complaints) == 1, words
    assert "nobody asked for: ['9']" in complaints[-1]
    assert len(complaints) == 5
