"""Two rows in every table that there is: one with all that it can say, one with no more than it must."""

from pathlib import Path
from typing import Any

from keeping import write_file
from sqlalchemy import JSON, Boolean, Column, Connection, Float, Integer, MetaData, String, insert, select

from ledger.db import Database
from ledger.store import Kept, Store
from ledger.tables import DEFAULT_TENANT, Blob, Table, Tenant

Row = dict[str, Any]
#: What a row must say to be one that goes into a backup.
SAID = {"job.state": "succeeded", "artifact.role": "product", "dataset.retain": True, "idempotency.status": 202}


def fill_every_table(db: Database, store: Store, folder: Path) -> None:
    files = [_put(store, folder, content) for content in (b"what the first row refers to", b"the second")]
    with db.write() as session:
        for table in Table.metadata.sorted_tables:
            if table is not Tenant.__table__:  # the migrations make the first, and the others are its own
                rows = [
                    {column.name: _value(column, n, kept) for column in table.columns} for n, kept in enumerate(files)
                ]
                session.execute(insert(table), rows)


def every_row(connection: Connection) -> dict[str, list[Row]]:
    """Of the tables as they are at this moment, in the middle of migrations too."""
    found = MetaData()
    found.reflect(connection)
    return {
        table.name: sorted((dict(row._mapping) for row in connection.execute(select(table))), key=str)
        for table in found.tables.values()
        if table.name != "alembic_version"
    }


def _value(column: Column[Any], n: int, kept: Kept) -> Any:
    name = f"{column.table.name}.{column.name}"
    if name in SAID:
        return SAID[name]
    if column.foreign_keys:
        key = next(iter(column.foreign_keys))
        return DEFAULT_TENANT if key.column is Tenant.__table__.c.id else _value(key.column, n, kept)
    if column.nullable and n:
        return None
    if column is Blob.__table__.c.size:
        return kept.size
    if column.name == "digest" or column.name.endswith("_digest"):
        return kept.digest
    return _of_type(column, name, n)


def _of_type(column: Column[Any], name: str, n: int) -> Any:
    match column.type:
        case JSON():
            return {"of": name, "deep": [n, None, 0.1, "ü"]}
        case Boolean():
            return not n
        case Float():
            return 1.7e9 + n + 1 / 3
        case Integer():
            return n + 1
        case String():
            return f"{name} {n}"
    raise NotImplementedError(f"{name} has a type that no row is made of yet: {column.type}")


def _put(store: Store, folder: Path, content: bytes) -> Kept:
    kept, path = write_file(folder, content)
    store.put(DEFAULT_TENANT, kept.digest, path)
    return kept
