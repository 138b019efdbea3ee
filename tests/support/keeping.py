"""Blobs and rows that refer to them, made the way that uploads and workers make them."""

from pathlib import Path

from sqlalchemy import select, update

from ledger import blobs
from ledger.clock import now
from ledger.db import Database
from ledger.ids import new_id
from ledger.store import Kept, Store, hash_file
from ledger.tables import DEFAULT_TENANT, Blob, Dataset, Model


def write_file(folder: Path, content: bytes) -> tuple[Kept, Path]:
    path = folder / new_id("file")
    path.write_bytes(content)
    return hash_file(path), path


def model_row(digest: str, tenant: str = DEFAULT_TENANT, **changes) -> Model:
    values = {"name": "net", "architecture": {}, "input": "8x8x1", "range": [0, 1], "parameters": 1, "size": 1}
    return Model(id=new_id("model"), tenant=tenant, digest=digest, origin="upload", **{**values, **changes})


def dataset_row(digest: str, tenant: str = DEFAULT_TENANT, **changes) -> Dataset:
    values = {"name": "images", "size": 1, "format": "npz", "splits": {}}
    return Dataset(id=new_id("dataset"), tenant=tenant, digest=digest, **{**values, **changes})


def keep_model(db: Database, store: Store, folder: Path, content: bytes) -> tuple[str, str]:
    """Its id and its digest."""
    return _keep(db, store, folder, content, model_row)


def keep_dataset(db: Database, store: Store, folder: Path, content: bytes, **changes) -> tuple[str, str]:
    return _keep(db, store, folder, content, lambda digest: dataset_row(digest, **changes))


def _keep(db, store, folder, content, make) -> tuple[str, str]:
    kept, path = write_file(folder, content)

    def record(session) -> str:
        row = make(kept.digest)
        session.add(row)
        return row.id

    try:
        return blobs.keep(db, store, DEFAULT_TENANT, kept, path, record), kept.digest
    finally:
        path.unlink()


def age(db: Database, digest: str, seconds: float) -> None:
    """As if nobody had touched it for so long."""
    with db.write() as session:
        session.execute(update(Blob).where(Blob.digest == digest).values(touched_at=now() - seconds))


def has_row(db: Database, digest: str) -> bool:
    with db.read() as session:
        return session.scalar(select(Blob.digest).where(Blob.digest == digest)) is not None


def has_bytes(store: Store, digest: str) -> bool:
    try:
        store.size(DEFAULT_TENANT, digest)
    except FileNotFoundError:
        return False
    return True
