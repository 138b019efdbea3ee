"""Rows and files, taken out of an installation that runs."""

import hashlib
import threading
from types import SimpleNamespace
from uuid import uuid4

import pytest
from backing import back_up, check, keep_file, restore, rows_of
from keeping import age, has_bytes, keep_dataset, keep_model
from rows import fill_every_table
from sqlalchemy import select

from ledger import blobs, events, lifecycle, schema
from ledger.artifacts import record_products
from ledger.backup import record
from ledger.backup.vault import open_to_read, open_to_write
from ledger.collector import collect_one
from ledger.errors import BackupError
from ledger.store import Store
from ledger.tables import DEFAULT_TENANT, Artifact, Dataset, Job, JobInput, Model


def test_every_row_of_every_table_comes_back(db, store, empty, target, tmp_path):
    fill_every_table(db, store, tmp_path)
    before = rows_of(db)
    back_up(db, store, target)
    check(target, tmp_path)
    restore(target, empty, tmp_path)
    assert {name: len(rows) for name, rows in before.items() if len(rows) < 2} == {"tenant": 1}
    assert rows_of(empty.db) == before | {"worker": [], "upload": [], "upload_part": []}
    assert schema.found(empty.db) == schema.newest()
    for row in before["blob"]:
        content = empty.store.read(DEFAULT_TENANT, row["digest"], 0, row["size"])
        assert hashlib.sha256(content).hexdigest() == row["digest"]


def test_data_that_is_not_to_be_kept_is_in_no_backup(db, store, empty, target, queue_job, tmp_path):
    fleeting, secret = keep_dataset(db, store, tmp_path, b"somebody's images", retain=False)
    lasting, shared = keep_dataset(db, store, tmp_path, b"other images")
    job_id = queue_job()
    lifecycle.claim(db, "cpu", "worker_1", 60)
    shown = keep_file(
        db,
        store,
        tmp_path,
        job_id,
        b"what shows them",
        lambda session, file: record_products(session, job_id, 1, [file]),
    )
    with db.write() as session:
        session.add(JobInput(job_id=job_id, resource_id=fleeting))
    back_up(db, store, target)
    content = target.read_bytes() if target.is_file() else b"".join(p.read_bytes() for p in target.glob("files/*/*"))
    assert b"other images" in content
    assert b"somebody's images" not in content
    assert b"what shows them" not in content
    restore(target, empty, tmp_path)
    with empty.db.read() as session:
        assert session.scalars(select(Dataset.id)).all() == [lasting]
        assert session.scalars(select(Artifact)).all() == []
        assert "keeps no data" in events.of_kind(session, job_id, "note")[0].data["text"]
    assert [has_bytes(empty.store, digest) for digest in (secret, shared, shown)] == [False, True, False]


def test_what_is_deleted_while_it_is_copied_is_not_in_it(db, store, target, empty, tmp_path, monkeypatch):
    model, going = keep_model(db, store, tmp_path, b"goes")
    _, staying = keep_dataset(db, store, tmp_path, b"stays")
    dump, snapshots = record.dump, []

    def dump_and_delete(*words):
        snapshots.append(dump(*words))
        if len(snapshots) == 1:
            with db.write() as session:
                session.delete(session.get_one(Model, model))
                blobs.let_go(session, DEFAULT_TENANT, [going], at_once=True)
            assert collect_one(db, store, 0, DEFAULT_TENANT, going)
        return snapshots[-1]

    monkeypatch.setattr(record, "dump", dump_and_delete)
    assert back_up(db, store, target)["files"] == {"count": 1, "bytes": 5}
    assert [len(each.files) for each in snapshots] == [2, 1]
    restore(target, empty, tmp_path)
    assert [has_bytes(empty.store, digest) for digest in (going, staying)] == [False, True]


def test_a_file_that_is_on_record_and_nowhere_else_is_named(db, store, target, tmp_path):
    model, digest = keep_model(db, store, tmp_path, b"lost")
    store.delete(DEFAULT_TENANT, digest)
    with pytest.raises(BackupError, match=rf"{digest} of {model} is on record and not in the store"):
        back_up(db, store, target)
    with pytest.raises(BackupError, match=r"there is no|never finished"):
        open_to_read(target)


def test_a_file_that_has_rotted_is_named(db, store, target, tmp_path):
    dataset, digest = keep_dataset(db, store, tmp_path, b"sound")
    place = tmp_path / "store" / DEFAULT_TENANT / digest
    place.chmod(0o644)
    place.write_bytes(b"rotte")
    with pytest.raises(BackupError, match=f"{digest} of {dataset} holds other bytes"):
        back_up(db, store, target)


class TestAgain:
    """The same folder a second time."""

    @pytest.fixture
    def read(self, store, monkeypatch):
        """Which files were read of the store."""
        seen, chunks = [], store.chunks
        monkeypatch.setattr(store, "chunks", lambda tenant, digest: seen.append(digest) or chunks(tenant, digest))
        return seen

    def test_only_what_is_new_is_copied_and_what_has_gone_goes(self, db, store, folder, empty, read, tmp_path):
        model, old = keep_model(db, store, tmp_path, b"old")
        _, same = keep_dataset(db, store, tmp_path, b"same")
        back_up(db, store, folder)
        with db.write() as session:
            session.delete(session.get_one(Model, model))
        _, new = keep_dataset(db, store, tmp_path, b"new")
        del read[:]
        back_up(db, store, folder)
        assert read == [new]
        assert {path.name for path in folder.glob("files/*/*")} == {same, new}
        assert len(list(folder.glob("record-*"))) == 1
        restore(folder, empty, tmp_path)
        assert [has_bytes(empty.store, digest) for digest in (old, same, new)] == [False, True, True]

    def test_one_that_breaks_off_leaves_the_one_before(self, db, store, folder, empty, tmp_path):
        _, sound = keep_model(db, store, tmp_path, b"sound")
        before = back_up(db, store, folder)
        _, lost = keep_dataset(db, store, tmp_path, b"lost")
        store.delete(DEFAULT_TENANT, lost)
        with pytest.raises(BackupError, match="not in the store"):
            back_up(db, store, folder)
        assert open_to_read(folder)[1] == before
        restore(folder, empty, tmp_path)
        assert has_bytes(empty.store, sound)

    def test_two_at_once_do_not_mix(self, db, store, target):
        with open_to_write(target), pytest.raises(BackupError, match="another backup is being written"):
            back_up(db, store, target)

    def test_a_folder_of_somebody_else_is_left_alone(self, db, store, folder):
        folder.mkdir()
        (folder / "thesis.tex").write_text("chapter one")
        with pytest.raises(BackupError, match="something else than a backup"):
            back_up(db, store, folder)
        assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


def test_it_is_one_moment_while_others_write(db, store, empty, folder, queue_job, tmp_path):
    """Events are counted by their job: a record of two moments would have more of the one than of the other."""
    job_id, over = queue_job(), threading.Event()

    def write():
        while not over.is_set():
            with db.write() as session:
                events.append(session, job_id, [("note", {"text": "still here"})] * 5)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            back_up(db, store, folder)
    finally:
        over.set()
        writer.join()
    restore(folder, empty, tmp_path)
    with empty.db.read() as session:
        job = session.get_one(Job, job_id)
        seen = events.after(session, job_id, 0, limit=10**6)
    assert [event.seq for event in seen] == list(range(1, job.seq + 1))
    assert job.seq > 5


def test_from_a_bucket_into_a_bucket(s3, db, empty, folder, tmp_path, monkeypatch):
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    there, here = (Store(s3.new_bucket(uuid4().hex)) for _ in range(2))
    _, digest = keep_model(db, there, tmp_path, b"weights in a bucket")
    back_up(db, there, folder)
    restore(folder, SimpleNamespace(db=empty.db, store=here), tmp_path)
    assert here.read(DEFAULT_TENANT, digest, 0, 19) == b"weights in a bucket"
    age(empty.db, digest, 10**6)
    assert not collect_one(empty.db, here, 0, DEFAULT_TENANT, digest)
