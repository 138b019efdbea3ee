import pytest
from keeping import keep_dataset, keep_model, write_file
from sqlalchemy import update

from ledger import artifacts, blobs, lifecycle, storage
from ledger.artifacts import Product
from ledger.clock import now
from ledger.settings import Settings
from ledger.storage import Keepers, Sum
from ledger.tables import DEFAULT_TENANT, Blob, Job, Tenant

DAY = 86400
SETTINGS = Settings(collect_grace_seconds=100, resume_point_days=7)


def sums(db, tenant: str = DEFAULT_TENANT) -> tuple[Sum, dict[str, Sum]]:
    with db.read() as session:
        return storage.sums(session, tenant)


def look(db, digest: str) -> tuple[list[str], float | None]:
    with db.read() as session:
        row = session.get_one(Blob, (DEFAULT_TENANT, digest))
        kept_by = storage.keepers(session, SETTINGS, DEFAULT_TENANT, [digest]).get(digest, Keepers())
        return kept_by.names, storage.expires_at(SETTINGS, row, kept_by)


@pytest.fixture
def job_with(db, store, tmp_path, queue_job):
    def job_with(content: bytes, record) -> tuple[str, str]:
        held = lifecycle.claim(db, "cpu", "worker_a", 60, queue_job())
        kept, path = write_file(tmp_path, content)
        blobs.put(db, store, DEFAULT_TENANT, kept, path)
        with blobs.referring(db, store, DEFAULT_TENANT, [kept]) as session:
            file = Product("file.npy", "x/y", kept)
            record(session, held.job_id, 1, [file] if record is artifacts.record_products else file)
        return held.job_id, kept.digest

    return job_with


def test_nothing_is_nothing(db):
    total, kinds = sums(db)
    assert (total, set(kinds.values())) == (Sum(0, 0), {Sum(0, 0)})


def test_what_is_kept_twice_counts_once(db, store, tmp_path, job_with):
    keep_model(db, store, tmp_path, b"12345")
    keep_model(db, store, tmp_path, b"12345")
    keep_dataset(db, store, tmp_path, b"123")
    job_with(b"12345", artifacts.record_products)
    job_with(b"1234567", artifacts.record_resume_point)
    kept, path = write_file(tmp_path, b"1")
    blobs.put(db, store, DEFAULT_TENANT, kept, path)
    total, kinds = sums(db)
    assert total == Sum(4, 16)
    assert kinds == {
        "models": Sum(1, 5),
        "datasets": Sum(1, 3),
        "flashcards": Sum(0, 0),
        "learners": Sum(0, 0),
        "artifacts": Sum(1, 5),
        "resume_points": Sum(1, 7),
        "uploads": Sum(0, 0),
        "unreferenced": Sum(1, 1),
    }


def test_each_tenant_sees_its_own(db, store, tmp_path):
    keep_model(db, store, tmp_path, b"12345")
    with db.write() as session:
        session.add(Tenant(id="somebody"))
    assert sums(db, "somebody")[0] == Sum(0, 0)
    with db.read() as session:
        assert storage.page(session, "somebody", 10, None) == ([], None)


def test_pages_are_newest_first_and_meet(db, store, tmp_path):
    digests = [keep_model(db, store, tmp_path, b"%d" % number)[1] for number in range(5)]
    with db.write() as session:
        for number, digest in enumerate(digests):
            session.execute(update(Blob).where(Blob.digest == digest).values(created_at=1000.25 + number // 2))
    seen, mark = [], None
    while True:
        with db.read() as session:
            rows, mark = storage.page(session, DEFAULT_TENANT, 2, mark)
        seen += [row.digest for row in rows]
        if mark is None:
            break
    assert seen == sorted(digests, key=lambda digest: (digests.index(digest) // 2, digest), reverse=True)


class TestUntilWhen:
    def test_a_model_s_file_has_no_end(self, db, store, tmp_path):
        id, digest = keep_model(db, store, tmp_path, b"weights")
        assert look(db, digest) == ([id], None)

    def test_a_file_that_nothing_refers_to_goes_after_the_grace(self, db, store, tmp_path):
        kept, path = write_file(tmp_path, b"loose")
        blobs.put(db, store, DEFAULT_TENANT, kept, path)
        with db.read() as session:
            touched_at = session.get_one(Blob, (DEFAULT_TENANT, kept.digest)).touched_at
        assert look(db, kept.digest) == ([], touched_at + 100)

    def test_data_that_is_not_kept_goes_in_its_time(self, db, store, tmp_path):
        id, digest = keep_dataset(db, store, tmp_path, b"images", retain=False, expires_at=5e9)
        assert look(db, digest) == ([id], 5e9)
        kept_id, _ = keep_dataset(db, store, tmp_path, b"images")
        assert look(db, digest) == (sorted([id, kept_id]), None)

    def test_a_resume_point_goes_some_days_after_its_job_has_ended(self, db, job_with):
        job_id, digest = job_with(b"point", artifacts.record_resume_point)
        assert look(db, digest) == ([f"{job_id}/file.npy"], None)
        with db.write() as session:
            session.execute(update(Job).values(ended_at=now()))
        with db.read() as session:
            ended_at = session.get_one(Job, job_id).ended_at
        assert look(db, digest) == ([f"{job_id}/file.npy"], pytest.approx(ended_at + 7 * DAY))
