"""Uploads, deletes and collections of the same few files at the same moment."""

import random
import threading
import time
from contextlib import suppress
from uuid import uuid4

import pytest
from keeping import age, has_bytes, has_row, keep_model, model_row, write_file
from sqlalchemy import delete, select

from ledger import blobs
from ledger.blobs import Collected
from ledger.collector import collect_one
from ledger.errors import StoreAway
from ledger.store import Store
from ledger.tables import DEFAULT_TENANT, Blob, Model


def test_a_reference_touches_the_blob(db, store, tmp_path):
    _, digest = keep_model(db, store, tmp_path, b"weights")
    age(db, digest, 1000)
    keep_model(db, store, tmp_path, b"weights")
    assert not collect_one(db, store, 500, DEFAULT_TENANT, digest)
    with db.read() as session:
        blob = session.scalars(select(Blob)).one()
    assert abs(blob.touched_at - time.time()) < 60


def test_no_reference_without_a_row(db, store, tmp_path):
    kept, path = write_file(tmp_path, b"weights")
    blobs.put(db, store, DEFAULT_TENANT, kept, path)
    assert collect_one(db, store, 0, DEFAULT_TENANT, kept.digest)
    with pytest.raises(Collected), blobs.referring(db, store, DEFAULT_TENANT, [kept]) as session:
        session.add(model_row(kept.digest))
    with db.read() as session:
        assert session.scalars(select(Model)).all() == []


def test_no_reference_to_bytes_that_a_dying_collector_took(db, store, tmp_path):
    """The row is back with the rollback, and the object is not."""
    kept, path = write_file(tmp_path, b"weights")
    blobs.put(db, store, DEFAULT_TENANT, kept, path)
    store.delete(DEFAULT_TENANT, kept.digest)
    with pytest.raises(Collected), blobs.referring(db, store, DEFAULT_TENANT, [kept]) as session:
        session.add(model_row(kept.digest))


def test_what_was_collected_in_between_is_put_again(db, store, tmp_path):
    kept, path = write_file(tmp_path, b"weights")
    calls = []

    def record(session):
        if not calls and db.is_sqlite:
            store.delete(DEFAULT_TENANT, kept.digest)  # SQLite lets no second writer in here
        elif not calls:
            assert collect_one(db, store, 0, DEFAULT_TENANT, kept.digest)
        calls.append(1)
        session.add(model_row(kept.digest))

    blobs.keep(db, store, DEFAULT_TENANT, kept, path, record)
    assert len(calls) == 2
    assert has_row(db, kept.digest)
    assert has_bytes(store, kept.digest)
    with db.read() as session:
        assert len(session.scalars(select(Model)).all()) == 1


def test_a_file_that_is_always_collected_first_is_refused_in_words(db, store, tmp_path):
    kept, path = write_file(tmp_path, b"weights")
    with pytest.raises(StoreAway, match="the grace is shorter"):
        blobs.keep(db, store, DEFAULT_TENANT, kept, path, lambda session: store.delete(DEFAULT_TENANT, kept.digest))


class Clumsy(Store):
    """Takes its time, and now and then its process is killed after the object was deleted, before the commit."""

    puts = 0

    def put(self, tenant, digest, path):
        self.puts += 1
        super().put(tenant, digest, path)
        time.sleep(random.random() * 0.005)

    def delete(self, tenant, digest):
        super().delete(tenant, digest)
        time.sleep(random.random() * 0.005)
        if random.random() < 0.2:
            raise RuntimeError("killed")


class Storm:
    """Uploaders, deleters, collectors and a watcher, all on the same few files."""

    SECONDS = 4
    LONGEST_SECONDS = 90  # on a busy machine, until enough has happened
    ENOUGH = 10

    def __init__(self, db, store, folder):
        self.db, self.store, self.folder = db, store, folder
        self.contents = [b"content %d" % number for number in range(3)]
        self.over = threading.Event()
        self.lost: list[str] = []
        self.defects: list[BaseException] = []
        self.counts = {"uploaded": 0, "collected": 0, "killed": 0, "watched": 0}

    def run(self):
        parts = [*[self.upload] * 3, *[self.delete] * 2, *[self.collect] * 2, self.watch]
        threads = [threading.Thread(target=self.keep_at, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        self.over.wait(self.SECONDS)
        deadline = time.monotonic() + self.LONGEST_SECONDS
        while not self.was_enough() and time.monotonic() < deadline and not self.over.wait(0.1):
            pass
        self.over.set()
        for thread in threads:
            thread.join()

    def was_enough(self) -> bool:
        """Everything has happened often, and many uploads had to start over."""
        return min(self.counts.values()) > self.ENOUGH and self.store.puts > self.counts["uploaded"] + self.ENOUGH

    def keep_at(self, part):
        try:
            while not self.over.is_set():
                part()
                time.sleep(random.random() * 0.005)
        except BaseException as defect:
            self.defects.append(defect)
            self.over.set()

    def upload(self):
        with suppress(StoreAway):  # started over too often
            keep_model(self.db, self.store, self.folder, random.choice(self.contents))
            self.counts["uploaded"] += 1

    def delete(self):
        with self.db.write() as session:
            ids = session.scalars(select(Model.id)).all()
            gone = [id for id in ids if random.random() < 0.7]
            session.execute(delete(Model).where(Model.id.in_(gone)))

    def collect(self):
        with self.db.read() as session:
            digests = session.scalars(select(Blob.digest)).all()
        for digest in digests:
            try:
                grace = random.choice([0, 0, 0.01, 0.05])
                self.counts["collected"] += collect_one(self.db, self.store, grace, DEFAULT_TENANT, digest)
            except RuntimeError:
                self.counts["killed"] += 1

    def watch(self):
        """A row that is there before and after the look was there all the time: its bytes had to be, too."""
        with self.db.read() as session:
            rows = session.execute(select(Model.id, Model.digest)).all()
        missing = [id for id, digest in rows if not has_bytes(self.store, digest)]
        with self.db.read() as session:
            self.lost += session.scalars(select(Model.id).where(Model.id.in_(missing))).all()
        self.counts["watched"] += len(rows)


@pytest.mark.slow
def test_a_storm_of_uploads_deletes_and_collections_loses_nothing(db, tmp_path):
    storm = Storm(db, Clumsy(f"file://{tmp_path / 'store'}"), tmp_path)
    storm.run()
    assert storm.defects == []
    assert storm.lost == []
    with db.read() as session:
        for digest in session.scalars(select(Model.digest)):
            assert has_row(db, digest)
            assert has_bytes(storm.store, digest)
    assert storm.was_enough(), (storm.counts, storm.store.puts)


def test_two_that_refer_to_the_same_blobs_in_another_order_do_not_block_each_other(db, store, tmp_path):
    files = [write_file(tmp_path, uuid4().bytes) for _ in range(4)]
    for kept, path in files:
        blobs.put(db, store, DEFAULT_TENANT, kept, path)
    defects = []

    def refer(order):
        try:
            for _ in range(20):
                with blobs.referring(db, store, DEFAULT_TENANT, [kept for kept, _ in order]):
                    pass
        except Exception as defect:
            defects.append(defect)

    threads = [threading.Thread(target=refer, args=(order,)) for order in (files, files[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert defects == []
