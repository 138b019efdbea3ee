"""Does the database have the tables that this code expects?"""

import sys
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from ledger.db import Database

VERSIONS = Path(__file__).parent / "migrations" / "versions"


def newest() -> str:
    return max(path.name.split("_")[0] for path in VERSIONS.glob("[0-9]*.py"))


def found(db: Database) -> str | None:
    try:
        with db.read() as session:
            version: str | None = session.scalar(text("SELECT version_num FROM alembic_version"))
    except DBAPIError:
        return None
    return version


def ensure_schema(db: Database) -> None:
    """Migrate where needed. The migration tool is imported only then: it would cost every start a quarter second."""
    version = found(db)
    if version == newest():
        return
    if version is not None and version > newest():
        sys.exit(f"flashcards: the database is at version {version}, newer than this program knows ({newest()})")
    from ledger.migrate import migrate

    migrate(db)
