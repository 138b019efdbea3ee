from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from ledger.db import Database

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
