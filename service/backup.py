"""`python -m service.backup TARGET`: record and files, while the service runs."""

import argparse
from pathlib import Path

from ledger import keys
from ledger.backup.take import Taking
from ledger.backup.vault import open_to_write
from ledger.db import Database
from ledger.errors import BackupError
from ledger.settings import Settings
from ledger.store import Store
from service.operating import Progress, in_words, say, size_in_words


def main() -> None:
    parser = argparse.ArgumentParser(prog="flashcards backup")
    parser.add_argument("target", type=Path)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with in_words(as_json=asked.json) as settings:
        back_up(settings, asked.target, asked.json)


def back_up(settings: Settings, target: Path, as_json: bool) -> None:
    if not settings.database_url and not (settings.home / "flashcards.db").exists():
        raise BackupError(f"there is nothing to back up in {settings.home}: FLASHCARDS_HOME says where the service is")
    db = Database(settings.database)
    try:
        with open_to_write(target) as vault:
            taking = Taking(db, Store(settings.store), vault, Progress("copied"))
            manifest = taking.take(keys.mark_of_secret(settings))
    finally:
        db.close()
    jobs, files = manifest["rows"]["job"], manifest["files"]
    told = f"{target}: {jobs} jobs, {files['count']} files, {size_in_words(files['bytes'])}"
    say({"target": str(target), **manifest} if as_json else told)


if __name__ == "__main__":
    main()
