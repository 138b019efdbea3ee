"""Make an installation of a backup: the files first, then all rows in one transaction.

Until that is committed there is nothing on record, so what broke off is simply run again.
"""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from alembic import command
from sqlalchemy import Connection, select, text, update
from sqlalchemy.orm import Session
from uuid_utils import uuid4

from ledger import lifecycle, retention, schema, workers
from ledger.backup import record
from ledger.backup.record import File
from ledger.backup.vault import Manifest, Source, copy, measure, name_of
from ledger.clock import now
from ledger.collector import KEY
from ledger.db import Database
from ledger.errors import BackupError
from ledger.lifecycle import Claim
from ledger.migrate import LOCK, alembic_config
from ledger.steps import UNFINISHED
from ledger.store import Store
from ledger.tables import Dataset, Job

AT_ONCE = 8
WHY = "the service was restored from a backup"


@dataclass
class Restoring:
    """`scratch` is a folder in the file system of the store. `tell` hears how many files are done, and of how many."""

    source: Source
    manifest: Manifest
    scratch: Path
    tell: Callable[[int, int], None] = lambda done, total: None

    def check(self) -> None:
        """Read all of it. Raises BackupError where something is missing or not as it was."""
        with self._folder() as folder:
            path = self._fetch_record(Path(folder))
            self._each(record.files_of(path), lambda file: _check(file, measure(self._chunks(name_of(file)))))

    def restore(self, db: Database, store: Store, keep_store: bool = False) -> None:
        _check_known(self.manifest)
        _check_unused(db)
        with self._folder() as folder:
            path = self._fetch_record(Path(folder))
            files = record.files_of(path)
            there = _found_in(store, files, keep_store)
            self._each(files - there, partial(self._put, store, Path(folder)))
            self._write(db, path)

    def _folder(self) -> "tempfile.TemporaryDirectory[str]":
        self.scratch.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=self.scratch, prefix="restore-")

    def _fetch_record(self, folder: Path) -> Path:
        told, path = self.manifest["record"], folder / "record"
        if copy(self._chunks(told["name"]), path) != (told["digest"], told["size"]):
            raise BackupError("the record of the backup is damaged: its digest is not the one that was written down")
        return path

    def _chunks(self, name: str) -> Iterator[bytes]:
        try:
            yield from self.source.chunks(name)
        except FileNotFoundError:
            raise BackupError(f"the backup is not whole: it has no {name}") from None

    def _each(self, files: frozenset[File], work: Callable[[File], None]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for done, _ in enumerate(threads.map(work, sorted(files, key=str)), 1):
                self.tell(done, len(files))

    def _put(self, store: Store, folder: Path, file: File) -> None:
        draft = folder / uuid4().hex
        _check(file, copy(self._chunks(name_of(file)), draft))
        store.put(file.tenant, file.digest, draft)
        draft.unlink()

    def _write(self, db: Database, path: Path) -> None:
        with db.bind.execution_options(writing=True).begin() as connection:
            if not db.is_sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
            _check_empty(connection)
            config = alembic_config(connection)
            command.downgrade(config, "base")
            command.upgrade(config, self.manifest["schema"])
            record.load(connection, path)
            command.upgrade(config, "head")
            with Session(connection) as session:
                _settle(session, self.manifest["taken_at"])
                session.flush()


def _check(file: File, found: tuple[str, int]) -> None:
    if found != (file.digest, file.size):
        raise BackupError(f"the backup is damaged: {name_of(file)} holds other bytes than it should")


def _check_known(manifest: Manifest) -> None:
    made, newest = manifest["schema"], schema.newest()
    if made > newest:
        raise BackupError(
            f"the backup was made by flashcards {manifest['flashcards']} with schema {made}, and this program knows "
            f"{newest} at most: restore it with that version or a newer one"
        )


def _check_unused(db: Database) -> None:
    """Before the long part. What is found here is looked at again in the transaction that writes."""
    with db.bind.connect() as connection:
        _check_empty(connection)
    if schema.found(db) is not None and (alive := sum(workers.alive(db).values())):
        raise BackupError(f"the service runs there, with {alive} live workers: stop it, and restore once they are gone")


def _check_empty(connection: Connection) -> None:
    if held := {name: count for name, count in record.counts(connection).items() if count}:
        rows = ", ".join(f"{name} {count}" for name, count in sorted(held.items()))
        raise BackupError(f"the database is not empty (rows: {rows}): restore into a new one")


def _found_in(store: Store, files: frozenset[File], keep_store: bool) -> frozenset[File]:
    """Those of the backup that are in the store, whole. Others there would be taken for leftovers, and collected."""
    wanted = {f"{file.tenant}/{file.digest}": file for file in files}
    listed = {entry.key for entry in store.list()}
    named = (KEY.fullmatch(key) for key in sorted(listed - wanted.keys()))
    strange = [match.string for match in named if match and not match["draft"]]
    if strange and not keep_store:
        raise BackupError(
            f"the store holds {len(strange)} files that are not in the backup, such as {strange[0]}. If another "
            "installation uses this store, restoring here would delete its files: name an empty one. If they are left "
            "over from this one, --keep-store goes on, and they are collected"
        )
    there = (wanted[key] for key in listed & wanted.keys())
    return frozenset(
        file for file in there if measure(store.chunks(file.tenant, file.digest)) == (file.digest, file.size)
    )


def _settle(session: Session, taken_at: float) -> None:
    """As if the service had been stopped at that moment, and started now."""
    waited = now() - taken_at
    timed = update(Job).where(Job.state.in_(UNFINISHED), Job.deadline.is_not(None))
    session.execute(timed.values(deadline=Job.deadline + waited).execution_options(synchronize_session=False))
    running = select(Job).where(Job.state == "running").order_by(Job.parent_id, Job.id)
    for job in session.scalars(running).all():
        lifecycle.release(session, Claim(job.id, job.tenant, job.attempt, job.spec), WHY)
    for dataset in session.scalars(select(Dataset).where(Dataset.retain.is_(False))).all():
        retention.discard(session, dataset)
