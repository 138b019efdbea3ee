"""`python -m service.restore SOURCE`: a backup becomes an installation, where there is none yet."""

import argparse
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from filelock import FileLock, Timeout

from ledger import keys
from ledger.backup.restore import Restoring
from ledger.backup.vault import Manifest, open_to_read
from ledger.db import Database
from ledger.errors import BackupError
from ledger.settings import Settings
from ledger.store import Store
from service.operating import Progress, in_words, say, size_in_words

OTHER_SECRET = "its keys were made with another FLASHCARDS_KEY_SECRET: until that is set here, they open nothing"


def main() -> None:
    parser = argparse.ArgumentParser(prog="flashcards restore")
    parser.add_argument("source", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep-store", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with in_words(as_json=asked.json) as settings:
        source, manifest = open_to_read(asked.source)
        leave_nothing = asked.check and not settings.home.exists()
        scratch = Path(tempfile.gettempdir()) if leave_nothing else settings.spool_folder
        restoring = Restoring(source, manifest, scratch, Progress("checked" if asked.check else "restored"))
        if asked.check:
            restoring.check()
        else:
            restore(settings, restoring, asked.keep_store)
        _tell(settings, manifest, asked)


def restore(settings: Settings, restoring: Restoring, keep_store: bool) -> None:
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock: AbstractContextManager[object] = nullcontext()
    if settings.embedded:
        lock = FileLock(settings.home / ".lock", timeout=0)
    try:
        with lock:
            db = Database(settings.database)
            try:
                restoring.restore(db, Store(settings.store), keep_store)
            finally:
                db.close()
    except Timeout:
        raise BackupError(f"a `flashcards serve` uses {settings.home}: stop it, or restore into another") from None


def _tell(settings: Settings, manifest: Manifest, asked: argparse.Namespace) -> None:
    rows, files = manifest["rows"], manifest["files"]
    warnings = [OTHER_SECRET] if rows["api_key"] and keys.mark_of_secret(settings) != manifest["key_mark"] else []
    if asked.json:
        say({"source": str(asked.source), **manifest, "warnings": warnings})
        return
    done = "whole" if asked.check else "restored"
    say(f"{asked.source}: {done}; {rows['job']} jobs, {files['count']} files, {size_in_words(files['bytes'])}")
    for warning in warnings:
        say(f"mind: {warning}")


if __name__ == "__main__":
    main()
