from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from ledger.db import Database

MIGRATIONS = Path(__file__).parent / "migrations"


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def migrate(db: Database) -> None:
    """Bring the database to the newest schema. Safe to run again and from several processes."""
    with db.bind.execution_options(writing=True).begin() as connection:
        command.upgrade(alembic_config(connection), "head")
