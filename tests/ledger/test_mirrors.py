import pytest

from flashcards.contract.specs import job_spec
from ledger import events, jobs, lifecycle, mirrors
from ledger.admission import Admitted
from ledger.errors import Unfit
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Job, Mirror

SPEC = {"kind": "capture", "model": "model_" + "0" * 32, "count": 4}
WITH = Settings(mlflow_url="http://127.0.0.1:5000")


@pytest.fixture
def mirrored(db):
    """A job that runs, and is to be mirrored."""

    def mirrored(run: bool = True) -> str:
        spec = job_spec.validate_python(SPEC)
        with db.write() as session:
            admitted = Admitted(queue="cpu", inputs=[], mirrored=True)
            job_id = jobs.create(session, DEFAULT_TENANT, spec, admitted).id
        if run:
            assert lifecycle.claim(db, "cpu", "worker_1", 60, job_id) is not None
        return job_id

    return mirrored


def said(db, job_id: str, kind: str) -> list[str]:
    with db.read() as session:
        return [event.data["text"] for event in events.of_kind(session, job_id, kind)]


def test_who_is_mirrored():
    spec = job_spec.validate_python
    assert mirrors.wanted(WITH, "default", spec(SPEC))
    assert not mirrors.wanted(WITH, "default", spec({**SPEC, "tracking": {"mirror": False}}))
    assert not mirrors.wanted(WITH, "default", spec({"kind": "noop"}))
    assert not mirrors.wanted(WITH, "acme", spec(SPEC))
    assert not mirrors.wanted(Settings(), "default", spec(SPEC))
    assert mirrors.wanted(Settings(mlflow_url="http://a", mlflow_tenants=["*"]), "acme", spec(SPEC))


def test_who_asks_for_what_there_is_not_is_told():
    asked = job_spec.validate_python({**SPEC, "tracking": {"experiment": "mine"}})
    for settings, tenant in ((Settings(), "default"), (WITH, "acme")):
        with pytest.raises(Unfit, match="FLASHCARDS_MLFLOW_URL"):
            mirrors.wanted(settings, tenant, asked)
    assert not mirrors.wanted(Settings(), "default", job_spec.validate_python({**SPEC, "tracking": {"mirror": False}}))


def test_a_queued_job_has_nothing_to_tell(db, mirrored):
    mirrored(run=False)
    assert mirrors.take(db) is None


def test_one_of_any_number_has_it_and_gives_it_back_when_it_has_told(db, mirrored):
    job_id = mirrored()
    assert mirrors.take(db).job_id == job_id
    assert mirrors.take(db) is None
    mirrors.advance(db, job_id, 0.0, run_id="r", seq=2, told={"mae": 7})
    row = mirrors.take(db)
    assert (row.run_id, row.seq, row.told) == ("r", 2, {"mae": 7})
    mirrors.advance(db, job_id, None)
    assert mirrors.take(db) is None


def test_a_warning_is_given_once_until_it_works_again(db, mirrored):
    job_id = mirrored()
    assert mirrors.unwarned(db) == [job_id]
    for _ in range(3):
        mirrors.warn(db, job_id, "away")
    assert mirrors.unwarned(db) == []
    assert said(db, job_id, "warning") == ["away"]
    mirrors.advance(db, job_id, 0.0, note="back")
    mirrors.warn(db, job_id, "away again")
    assert said(db, job_id, "warning") == ["away", "away again"]
    assert said(db, job_id, "note") == ["back"]


def test_what_could_not_be_told_is_counted(db, mirrored):
    job_id = mirrored()
    for tries in range(3):
        assert mirrors.take(db).tries == tries
        mirrors.put_off(db, job_id, 0.0)
    mirrors.put_off(db, job_id, 60.0)
    assert mirrors.take(db) is None


def test_a_job_that_is_retried_is_told_of_again(db, mirrored):
    job_id = mirrored()
    mirrors.advance(db, job_id, None)
    with db.write() as session:
        job = session.get_one(Job, job_id)
        claim = lifecycle.Claim(job_id, DEFAULT_TENANT, job.attempt, job.spec)
        assert lifecycle.settle(session, claim, "failed", error={"type": "a", "title": "b", "detail": "c"})
    assert mirrors.take(db) is None
    with db.write() as session:
        lifecycle.retry(session, DEFAULT_TENANT, job_id)
    assert mirrors.take(db) is None  # it is queued
    lifecycle.claim(db, "cpu", "worker_1", 60, job_id)
    assert mirrors.take(db).job_id == job_id


def test_a_row_goes_with_its_job(db, mirrored):
    job_id = mirrored()
    with db.write() as session:
        session.delete(session.get_one(Job, job_id))
    with db.read() as session:
        assert session.get(Mirror, job_id) is None
