import os
import time
from uuid import uuid4

import pytest
from keeping import age, has_bytes, has_row, keep_dataset, keep_model, model_row, write_file
from servers import s3_server

from ledger import artifacts, blobs, collector, lifecycle
from ledger.artifacts import Product
from ledger.collector import Collector, adopt_strays, collect_one
from ledger.store import Store
from ledger.tables import DEFAULT_TENANT, Flashcards, Model, Tenant

GRACE = 3600


@pytest.fixture
def collect(db, store):
    return Collector(db, store, GRACE).collect


def put(db, store, tmp_path, content: bytes) -> str:
    kept, path = write_file(tmp_path, content)
    blobs.put(db, store, DEFAULT_TENANT, kept, path)
    return kept.digest


def forget(db, table, id: str) -> None:
    with db.write() as session:
        row = session.get_one(table, id)
        session.delete(row)
        blobs.let_go(session, DEFAULT_TENANT, [row.digest])


def test_what_nothing_refers_to_goes_after_the_grace(db, store, tmp_path, collect):
    id, digest = keep_model(db, store, tmp_path, b"weights")
    age(db, digest, 2 * GRACE)
    assert collect() == 0
    forget(db, Model, id)
    assert collect() == 0, "the grace runs from the last reference on"
    age(db, digest, 2 * GRACE)
    assert collect() == 1
    assert not has_row(db, digest)
    assert not has_bytes(store, digest)


def refer(db, kind: str, digest: str) -> None:
    other = "f" * 64
    with db.write() as session:
        match kind:
            case "model":
                session.add(model_row(digest))
            case "probe":
                session.add(model_row(other, probe_digest=digest))
            case "cards" | "sheet":
                named = {"digest": digest, "sheet_digest": other}
                if kind == "sheet":
                    named = {"digest": other, "sheet_digest": digest}
                row = {"model_id": "model_x", "job_id": "job_x", "recipe": {}, "size": 1}
                session.add(Flashcards(id=uuid4().hex, tenant=DEFAULT_TENANT, **named, **row))


@pytest.mark.parametrize("kind", ["model", "probe", "cards", "sheet"])
def test_every_reference_keeps_it(db, store, tmp_path, collect, kind):
    digest = put(db, store, tmp_path, b"needed")
    refer(db, kind, digest)
    age(db, digest, 2 * GRACE)
    assert collect() == 0
    assert has_bytes(store, digest)


@pytest.mark.parametrize("role", ["product", "resume_point"])
def test_a_file_of_a_job_is_kept_by_the_job(db, store, tmp_path, collect, queue_job, role):
    held = lifecycle.claim(db, "cpu", "worker_a", 60, queue_job())
    kept, path = write_file(tmp_path, b"made")
    blobs.put(db, store, DEFAULT_TENANT, kept, path)
    file = Product("file.npy", "x/y", kept)
    with blobs.referring(db, store, DEFAULT_TENANT, [kept]) as session:
        if role == "product":
            artifacts.record_products(session, held.job_id, 1, [file])
        else:
            artifacts.record_resume_point(session, held.job_id, 1, file)
    age(db, kept.digest, 2 * GRACE)
    assert collect() == 0


def test_another_tenant_s_reference_keeps_nothing(db, store, tmp_path, collect):
    digest = put(db, store, tmp_path, b"mine")
    with db.write() as session:
        session.add(Tenant(id="somebody"))
        session.flush()
        session.add(model_row(digest, tenant="somebody"))
    age(db, digest, 2 * GRACE)
    assert collect() == 1


def test_a_dataset_keeps_its_file(db, store, tmp_path, collect):
    _, digest = keep_dataset(db, store, tmp_path, b"images")
    age(db, digest, 2 * GRACE)
    assert collect() == 0
    assert has_bytes(store, digest)


def test_a_row_without_bytes_goes_too(db, store, tmp_path, collect):
    digest = put(db, store, tmp_path, b"half gone")
    store.delete(DEFAULT_TENANT, digest)
    age(db, digest, 2 * GRACE)
    assert collect() == 1
    assert not has_row(db, digest)


def test_a_round_is_bounded_and_the_next_goes_on(db, store, tmp_path, monkeypatch):
    monkeypatch.setattr(collector, "LOOKED_AT", 4)
    monkeypatch.setattr(collector, "REMOVED", 3)
    needed = [keep_model(db, store, tmp_path, b"needed %d" % number)[1] for number in range(4)]
    loose = [put(db, store, tmp_path, b"loose %d" % number) for number in range(7)]
    for digest in needed:
        age(db, digest, 3 * GRACE)
    for digest in loose:
        age(db, digest, 2 * GRACE)
    rounds = Collector(db, store, GRACE)
    assert [rounds.collect() for _ in range(5)] == [0, 3, 3, 1, 0]
    assert [digest for digest in needed if not has_bytes(store, digest)] == []
    assert [digest for digest in loose if has_bytes(store, digest)] == []


def test_with_the_store_away_the_rows_stay(db, tmp_path, monkeypatch):
    with s3_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        store = Store(server.new_bucket("bucket"))
        digest = put(db, store, tmp_path, b"far away")
        age(db, digest, 2 * GRACE)
    assert Collector(db, store, GRACE).collect() == 0
    assert collector.collect(db, store, GRACE, [(DEFAULT_TENANT, digest)]) == 0
    assert has_row(db, digest)


class TestStrays:
    def lay(self, store_folder, name: str, days_old: float) -> None:
        path = store_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left behind")
        os.utime(path, (time.time() - days_old * 86400,) * 2)

    def names(self, folder) -> set[str]:
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def test_old_objects_without_a_row_and_old_drafts_go(self, db, store, tmp_path, collect):
        folder = tmp_path / "store"
        _, needed = keep_model(db, store, tmp_path, b"needed")
        os.utime(folder / "default" / needed, (0, 0))
        draft = f"default/{'d' * 64}.{uuid4().hex}.tmp"
        for name, days in ((f"default/{'a' * 64}", 2), (f"default/{'b' * 64}", 0), (draft, 2)):
            self.lay(folder, name, days)
        others = {f"nobody/{'a' * 64}", "default/README", "lost+found"}
        for name in others:
            self.lay(folder, name, 2)
        assert adopt_strays(db, store, GRACE) == 2
        assert collect() == 1
        assert self.names(folder) == {f"default/{needed}", f"default/{'b' * 64}"} | others
        assert adopt_strays(db, store, GRACE) == 0

    def test_in_a_bucket_too(self, db, s3, tmp_path, monkeypatch):
        for name, value in s3.environment.items():
            monkeypatch.setenv(name, value)
        bucket = uuid4().hex
        store = Store(s3.new_bucket(bucket))
        _, needed = keep_model(db, store, tmp_path, b"needed")
        stray, path = write_file(tmp_path, b"stray")
        store.put(DEFAULT_TENANT, stray.digest, path)
        assert adopt_strays(db, store, GRACE) == 0, "too young"
        assert adopt_strays(db, store, -60) == 1
        assert Collector(db, store, GRACE).collect() == 1
        assert s3.keys(bucket) == [f"some/prefix/default/{needed}"]


@pytest.mark.parametrize("db", ["postgresql"], indirect=True)  # SQLite has one lock, and whoever wants it waits
def test_who_finds_the_row_locked_goes_on(db, store, tmp_path):
    digest = put(db, store, tmp_path, b"busy")
    age(db, digest, 2 * GRACE)
    with db.write() as session:
        blobs.let_go(session, DEFAULT_TENANT, [digest])
        assert not collect_one(db, store, GRACE, DEFAULT_TENANT, digest)
    assert has_bytes(store, digest)
