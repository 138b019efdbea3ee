"""Take a backup while the service runs."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from uuid_utils import uuid4

import flashcards
from ledger import schema
from ledger.backup import record
from ledger.backup.record import File, Snapshot
from ledger.backup.vault import FORMAT, Manifest, Vault, copy
from ledger.blobs import REFERENCES
from ledger.db import Database
from ledger.errors import BackupError
from ledger.store import Store, hash_file

ROUNDS = 20
AT_ONCE = 8  # files under way: a bucket is slow to answer, not slow to send
Tell = Callable[[int, int], None]


@dataclass
class Taking:
    """`tell` hears how many files are done, and of how many."""

    db: Database
    store: Store
    vault: Vault
    tell: Tell = lambda done, total: None

    def take(self, key_mark: str | None = None) -> Manifest:
        _check_schema(self.db)
        path = self.vault.drafts / "record"
        missing = frozenset[File]()
        for _ in range(ROUNDS):
            snapshot = record.dump(self.db, path)
            gone = frozenset(self._copy(snapshot.files))
            if not gone:
                manifest = _manifest(snapshot, path, key_mark)
                self.vault.commit(manifest, path, snapshot.files)
                return manifest
            if still := gone & missing:
                raise BackupError(f"{self._in_words(min(still, key=str))} is on record and not in the store")
            missing = gone
            path.unlink()
        raise BackupError("files are deleted faster than they can be copied: try again when there is less to do")

    def _copy(self, files: Iterable[File]) -> Iterable[File]:
        """Those that were not there any more."""
        wanted = sorted((file for file in files if not self.vault.has(file)), key=str)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for done, (file, found) in enumerate(zip(wanted, threads.map(self._copy_one, wanted), strict=True), 1):
                self.tell(done, len(wanted))
                if not found:
                    yield file

    def _copy_one(self, file: File) -> bool:
        draft = self.vault.drafts / uuid4().hex
        try:
            found = copy(self.store.chunks(file.tenant, file.digest), draft)
        except FileNotFoundError:
            draft.unlink(missing_ok=True)
            return False
        if found != (file.digest, file.size):
            raise BackupError(f"{self._in_words(file)} holds other bytes than it should: the store is damaged there")
        self.vault.add(file, draft)
        return True

    def _in_words(self, file: File) -> str:
        """The file, and what refers to it: who deletes that can go on."""
        with self.db.read() as session:
            for references in REFERENCES.values():
                for each in references:
                    theirs = (each.tenant == file.tenant, each.digest == file.digest, *each.where)
                    if name := session.scalar(select(each.name).where(*theirs).limit(1)):
                        return f"the file {file.tenant}/{file.digest} of {name}"
        return f"the file {file.tenant}/{file.digest}"


def _check_schema(db: Database) -> None:
    found, known = schema.found(db), schema.newest()
    if found is None:
        raise BackupError("there is nothing to back up: the database has no tables of this service")
    if found != known:
        raise BackupError(
            f"the database is at version {found} and this program at {known}: take the backup with the program that "
            "runs there, or start the service once, which brings the database up to date"
        )


def _manifest(snapshot: Snapshot, path: Path, key_mark: str | None) -> Manifest:
    kept = hash_file(path)
    return {
        "format": FORMAT,
        "flashcards": flashcards.__version__,
        "schema": schema.newest(),
        "taken_at": snapshot.taken_at,
        "record": {"name": f"record-{kept.digest[:16]}.jsonl.gz", "digest": kept.digest, "size": kept.size},
        "rows": snapshot.rows,
        "files": {"count": len(snapshot.files), "bytes": sum(file.size for file in snapshot.files)},
        "key_mark": key_mark,
    }
