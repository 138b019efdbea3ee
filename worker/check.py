"""`python -m worker.check`: has the worker of this machine given a sign of life? For a container's health check."""

import sys

from sqlalchemy.exc import DBAPIError

from ledger.db import Database
from ledger.settings import load_settings
from ledger.workers import ALIVE_SECONDS, is_alive_here


def main() -> None:
    db = Database(load_settings().database)
    try:
        alive = is_alive_here(db)
    except DBAPIError as error:
        sys.exit(f"flashcards: the database does not answer: {error.orig}")
    finally:
        db.close()
    if not alive:
        sys.exit(f"flashcards: no worker of this machine gave a sign of life in the last {ALIVE_SECONDS} s")


if __name__ == "__main__":
    main()
