"""The rows, out of one database and into another."""

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Connection, MetaData, Select, event, exists, func, insert, or_, select
from sqlalchemy import Table as Rows

from ledger.blobs import ARRIVED, Reference, is_needed
from ledger.clock import now
from ledger.db import Database
from ledger.errors import BackupError
from ledger.tables import DEFAULT_TENANT, Artifact, Blob, Dataset, Idempotency, JobInput, Json, Table

AT_ONCE = 1_000
#: Signs of life of processes, and files on their way: they belong to an installation, and not to what it keeps.
LEFT_OUT = frozenset({"worker", "upload", "upload_part"})

_fleeting = (
    exists()
    .where(JobInput.job_id == Artifact.job_id, JobInput.resource_id == Dataset.id, Dataset.retain.is_(False))
    .correlate(Artifact)
)
_shows = or_(Artifact.shows_data, Artifact.role == "resume_point")


def _and(references: tuple[Reference, ...], *where: Any) -> tuple[Reference, ...]:
    return tuple(replace(each, where=(*each.where, *where)) for each in references)


#: As `ledger.retention.discard` would leave them, if all data that is not to be kept went now.
LASTING = ARRIVED | {
    "datasets": _and(ARRIVED["datasets"], Dataset.retain.is_(True)),
    "artifacts": _and(ARRIVED["artifacts"], ~(_shows & _fleeting)),
    "resume_points": _and(ARRIVED["resume_points"], ~(_shows & _fleeting)),
}


@dataclass(frozen=True)
class File:
    tenant: str
    digest: str
    size: int


@dataclass(frozen=True)
class Snapshot:
    """What one moment saw: when that was, how many rows of each table, and the files that they refer to."""

    taken_at: float
    rows: dict[str, int]
    files: frozenset[File]


def dump(db: Database, path: Path) -> Snapshot:
    """Every row that outlives this installation, as of one moment."""
    rows: dict[str, int] = {}
    with one_moment(db) as connection, gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as lines:
        taken_at = float(connection.scalar(select(now())) or 0)
        for table in Table.metadata.sorted_tables:
            if table.name in LEFT_OUT:
                continue
            lines.write(json.dumps({"table": table.name, "columns": table.columns.keys()}) + "\n")
            rows[table.name] = 0
            for row in connection.execute(_chosen(table), execution_options={"yield_per": AT_ONCE}):
                lines.write(json.dumps(list(row)) + "\n")
                rows[table.name] += 1
        files = frozenset(File(*row) for row in connection.execute(_lasting_files()))
    return Snapshot(taken_at, rows, files)


@contextmanager
def one_moment(db: Database) -> Iterator[Connection]:
    """A transaction whose statements all see what the first one saw, while others go on writing."""
    options = {} if db.is_sqlite else {"isolation_level": "REPEATABLE READ"}
    with db.bind.connect().execution_options(**options) as connection, connection.begin():
        yield connection


def _lasting_files() -> Select[str, str, int]:
    return select(Blob.tenant, Blob.digest, Blob.size).where(is_needed(LASTING))


def _chosen(table: Any) -> Select[Any]:
    if table is Blob.__table__:
        return select(table).where(is_needed(LASTING))
    if table is Idempotency.__table__:
        return select(table).where(Idempotency.status.is_not(None))  # of a request that was under way nobody is left
    return select(table)


def files_of(path: Path) -> frozenset[File]:
    found = set()
    for table, columns, rows in _batches(path):
        if table == Blob.__tablename__:
            places = [columns.index(name) for name in ("tenant", "digest", "size")]
            found |= {File(*(row[place] for place in places)) for row in rows}
    return frozenset(found)


def load(connection: Connection, path: Path) -> None:
    """Into tables of the same schema that hold nothing."""
    tables = _tables(connection)
    connection.execute(tables["tenant"].delete())  # the one that every schema begins with is in the record too
    for name, columns, rows in _batches(path):
        if name not in tables or not set(columns) <= set(tables[name].columns.keys()):
            raise BackupError(f"the record of the backup does not go with its schema: it has {name} with {columns}")
        connection.execute(insert(tables[name]), [dict(zip(columns, row, strict=True)) for row in rows])


def counts(connection: Connection) -> dict[str, int]:
    """How many rows each table has, but for those that every installation begins with."""
    found = {}
    for name, table in _tables(connection).items():
        rows = select(func.count()).select_from(table)
        if name == "tenant":
            rows = rows.where(table.columns["id"] != DEFAULT_TENANT)
        if name not in (*LEFT_OUT, "alembic_version"):
            found[name] = connection.scalar(rows) or 0
    return found


def _tables(connection: Connection) -> dict[str, Rows]:
    """As they are in the database, which may be older than this program."""
    metadata = MetaData()

    @event.listens_for(metadata, "column_reflect")
    def _reflected(_: Any, __: Any, column: Any) -> None:
        if isinstance(column["type"], JSON):
            column["type"] = Json  # what is missing is NULL, and not JSON's null

    metadata.reflect(connection)
    return dict(metadata.tables)


def _batches(path: Path) -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    name, columns, rows = "", list[str](), list[list[Any]]()
    for line in _lines(path):
        if isinstance(line, list) and len(rows) < AT_ONCE:
            rows.append(line)
            continue
        if rows:
            yield name, columns, rows
        rows = [line] if isinstance(line, list) else []
        if isinstance(line, dict):
            name, columns = line["table"], line["columns"]
    if rows:
        yield name, columns, rows


def _lines(path: Path) -> Iterable[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
