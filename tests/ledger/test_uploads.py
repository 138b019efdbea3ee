import pytest
from keeping import write_file
from sqlalchemy import func, select

from ledger import blobs, landing, storage, uploads
from ledger.backup.record import dump
from ledger.clock import now
from ledger.collector import Collector, adopt_strays
from ledger.errors import Complete, NoRoom, NotFound
from ledger.keys import Principal
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Blob, Upload, UploadPart

ANSWER = uploads.Answer("mark", 201, "/v1/models/model_1", "{}")


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=tmp_path / "home", upload_part_bytes=8)


@pytest.fixture
def begin(db, settings):
    def begin(digest: str = "a" * 64, size: int = 20, **quota) -> tuple[Upload, bool]:
        with db.write() as session:
            row, new = uploads.begin(session, settings, Principal(**quota), digest, size)
            session.refresh(row)
            return row, new

    return begin


@pytest.fixture
def put(db, store, settings, tmp_path):
    def put(upload: Upload, number: int, content: bytes) -> str:
        kept, path = write_file(tmp_path, content)

        def record(session):
            uploads.take_part(session, settings, DEFAULT_TENANT, upload.id, number, kept)

        blobs.keep(db, store, DEFAULT_TENANT, kept, path, record)
        return kept.digest

    return put


def close(db, settings, upload, answer=ANSWER):
    with db.write() as session:
        uploads.close(session, settings, DEFAULT_TENANT, upload.id, answer)


def expire(db, upload):
    with db.write() as session:
        session.get_one(Upload, upload.id).expires_at = now() - 1


def counts(db) -> tuple[int, int]:
    with db.read() as session:
        return tuple(session.scalar(select(func.count()).select_from(table)) for table in (Upload, UploadPart))


def test_parts_are_of_one_size_and_the_last_has_what_is_left(begin):
    row, _ = begin(size=20)
    assert [uploads.size_of(row, number) for number in range(1, uploads.count(row) + 1)] == [8, 8, 4]
    row, _ = begin(digest="b" * 64, size=16)
    assert [uploads.size_of(row, number) for number in range(1, uploads.count(row) + 1)] == [8, 8]
    row, _ = begin(digest="c" * 64, size=1)
    assert (uploads.count(row), uploads.size_of(row, 1)) == (1, 1)
    row, _ = begin(digest="d" * 64, size=8_000_001)
    assert (row.part_size, uploads.count(row)) == (8001, 1000), "there are never too many"


def test_begun_again_it_is_the_same_until_it_is_over(db, settings, begin):
    row, new = begin()
    assert new
    assert begin(size=21)[1], "another file"
    again, new = begin()
    assert (again.id, new, again.expires_at >= row.expires_at) == (row.id, False, True)
    close(db, settings, row)
    other, new = begin()
    assert (other.id != row.id, new) == (True, True)
    expire(db, other)
    assert begin()[1]


def test_what_is_missing(db, store, begin, put):
    row, _ = begin(size=20)
    put(row, 2, b"12345678")
    with db.read() as session:
        parts = uploads.parts_of(session, [row.id])[row.id]
    assert uploads.missing(store, row, parts) == [1, 3]


def test_the_last_one_wins_and_the_one_before_may_go(db, begin, put):
    row, _ = begin()
    first, second = put(row, 1, b"aaaaaaaa"), put(row, 1, b"bbbbbbbb")
    assert put(row, 1, b"bbbbbbbb") == second
    with db.read() as session:
        assert session.get_one(UploadPart, (row.id, 1)).digest == second
        touched = {blob.digest: blob.touched_at for blob in session.scalars(select(Blob))}
    assert touched[first] == 0
    assert touched[second] > 0


def test_parts_stay_while_it_is_open_and_go_at_once_afterwards(db, store, settings, begin, put):
    row, _ = begin()
    digests = {put(row, number, bytes([number]) * 8) for number in (1, 2)}
    assert Collector(db, store, grace_seconds=-1).collect() == 0
    close(db, settings, row)
    assert counts(db) == (1, 0)
    assert Collector(db, store, grace_seconds=3600).collect() == len(digests), "without the grace of other files"
    assert list(store.list()) == []


def test_a_part_that_something_else_refers_to_stays(db, store, settings, begin, put):
    """A file of one part is its own part."""
    one, _ = begin(size=8)
    other, _ = begin(digest="b" * 64, size=8)
    digest = put(one, 1, b"the same")
    put(other, 1, b"the same")
    close(db, settings, one)
    assert Collector(db, store, grace_seconds=3600).collect() == 0
    assert store.size(DEFAULT_TENANT, digest) == 8


def test_closed_once(db, settings, begin, put):
    row, _ = begin()
    close(db, settings, row)
    with pytest.raises(uploads.Answered) as raised:
        close(db, settings, row, uploads.Answer("other", 201, "/v1/models/model_2", "{}"))
    assert raised.value.answer == ANSWER
    with pytest.raises(Complete, match="model_1"):
        put(row, 1, b"too late")


def test_it_is_another_tenants(db, begin):
    row, _ = begin()
    with db.read() as session, pytest.raises(NotFound):
        uploads.find(session, "somebody", row.id)


def test_forgotten_when_its_time_is_over(db, store, settings, begin, put):
    open_one, _ = begin()
    left, _ = begin(digest="b" * 64)
    done, _ = begin(digest="c" * 64)
    digest = put(left, 1, b"left ...")
    close(db, settings, done)
    for row in (left, done):
        expire(db, row)
    with db.read() as session, pytest.raises(NotFound):
        uploads.find(session, DEFAULT_TENANT, left.id)
    with pytest.raises(NotFound):
        put(left, 2, b"too late")
    assert uploads.forget(db, store) == 2
    assert uploads.forget(db, store) == 0
    with db.read() as session:
        assert list(session.scalars(select(Upload.id))) == [open_one.id]
    Collector(db, store, grace_seconds=3600).collect()
    with pytest.raises(FileNotFoundError):
        store.size(DEFAULT_TENANT, digest)


def test_the_quota_counts_what_was_begun_and_not_its_parts_again(db, settings, begin, put):
    row, _ = begin(size=20, max_stored_bytes=30)
    put(row, 1, b"12345678")
    begin(digest="b" * 64, size=10, max_stored_bytes=30)
    with pytest.raises(NoRoom):
        begin(digest="c" * 64, size=1, max_stored_bytes=30)
    expire(db, row)
    begin(digest="c" * 64, size=20, max_stored_bytes=30)


def test_storage_tells_of_the_parts(db, settings, begin, put):
    row, _ = begin()
    digest = put(row, 2, b"12345678")
    with db.read() as session:
        _, kinds = storage.sums(session, DEFAULT_TENANT)
        keepers = storage.keepers(session, settings, DEFAULT_TENANT, [digest])[digest]
        expires_at = session.get_one(Upload, row.id).expires_at
    assert (kinds["uploads"].count, kinds["uploads"].bytes, kinds["unreferenced"].count) == (1, 8, 0)
    assert (keepers.names, keepers.until, keepers.endless) == ([f"{row.id}/parts/2"], expires_at, False)


def test_a_backup_leaves_them_out(db, begin, put, tmp_path):
    row, _ = begin()
    put(row, 1, b"12345678")
    seen = dump(db, tmp_path / "record.gz")
    assert seen.files == frozenset()
    assert not {"upload", "upload_part"} & set(seen.rows)
    assert seen.rows["blob"] == 0


class TestInTheBucket:
    """Parts that came by a link. A folder stands for the bucket: the keys are the same."""

    @pytest.fixture
    def land(self, db, store, tmp_path):
        def land(upload: Upload, number: int, content: bytes) -> None:
            path = tmp_path / "store" / landing.key(DEFAULT_TENANT, upload.id, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            with db.write() as session:
                session.get_one(Upload, upload.id).linked = True
            upload.linked = True

        return land

    def test_only_those_of_the_right_length_count(self, store, begin, land):
        row, _ = begin(size=20)
        land(row, 1, b"12345678")
        land(row, 2, b"too short"[:7])
        land(row, 3, b"too long for the last")
        land(row, 4, b"no such part")
        assert uploads.missing(store, row, {}) == [2, 3]
        assert landing.sizes(store, DEFAULT_TENANT, row.id) == {1: 8, 2: 7, 3: 21, 4: 12}

    def test_they_go_with_it(self, db, store, begin, land):
        row, _ = begin()
        land(row, 1, b"12345678")
        expire(db, row)
        assert uploads.forget(db, store) == 1
        assert list(store.list()) == []

    def test_strays_are_found_by_the_slower_look(self, db, store, begin, land):
        gone, _ = begin()
        here, _ = begin(digest="b" * 64)
        for row in (gone, here):
            land(row, 1, b"12345678")
        with db.write() as session:
            uploads.discard(session, session.get_one(Upload, gone.id))
        assert adopt_strays(db, store, grace_seconds=60) == 0, "too young"
        assert adopt_strays(db, store, grace_seconds=-60) == 1
        assert [entry.key for entry in store.list()] == [landing.key(DEFAULT_TENANT, here.id, 1)]
