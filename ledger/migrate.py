"""`python -m ledger.migrate`: bring the database to the newest schema, and end.

Every process does so when it starts; a cluster may like to see it done before.
"""

import sys
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ledger.db import Database
from ledger.logs import configure_logs
from ledger.schema import ensure_schema, newest
from ledger.settings import load_settings

LOCK = 20260101  # any number, as long as nobody else in this database takes the same
MIGRATIONS = Path(__file__).parent / "migrations"


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def migrate(db: Database) -> None:
    """Bring the database to the newest schema. Safe to run again and from several processes."""
    with db.bind.execution_options(writing=True).begin() as connection:
        if not db.is_sqlite:  # SQLite's write lock is taken by the transaction itself
            connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
        command.upgrade(alembic_config(connection), "head")


def main() -> None:
    settings = load_settings()
    configure_logs(settings)
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    db = Database(settings.database)
    try:
        ensure_schema(db)
        migrate(db)
    except DBAPIError as error:
        sys.exit(f"flashcards: the database cannot be migrated: {error.orig}")
    finally:
        db.close()
    print(f"flashcards: the database is at version {newest()}")


if __name__ == "__main__":
    main()
