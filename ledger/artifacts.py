"""Bytes by content: a folder, S3, GCS or Azure behind one URL, under `{tenant}/{digest}`."""

import errno
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
import structlog
from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ledger.tables import Artifact, Blob

CHUNK = 1024**2
log = structlog.get_logger()


@dataclass(frozen=True)
class Kept:
    """A file that is in the store."""

    digest: str
    size: int


@dataclass(frozen=True)
class Product:
    """A kept file under the name the user knows it by."""

    name: str
    media_type: str
    kept: Kept


class Store:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._root = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._store: Any = (
            obstore.store.LocalStore(self._root, mkdir=True) if self._root else obstore.store.from_url(url)
        )

    def keep(self, tenant: str, digest: str, path: Path) -> None:
        """Take the file over: in a local store a rename, so that it appears whole or not at all."""
        if self._root is None:
            self._store.put(_key(tenant, digest), path)
            path.unlink()
            return
        target = self._root / tenant / digest
        target.parent.mkdir(parents=True, exist_ok=True)
        path.chmod(0o444)
        try:
            path.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            draft = target.with_name(f"{digest}.{os.getpid()}.tmp")
            shutil.copyfile(path, draft)
            draft.rename(target)
            path.unlink()

    def fetch(self, tenant: str, digest: str, to: Path) -> None:
        """Put a read-only copy at `to`: in a local store a link, which costs no bytes."""
        if self._root is not None:
            try:
                os.link(self._root / tenant / digest, to)
                return
            except OSError as error:
                if isinstance(error, FileNotFoundError):
                    raise
        with to.open("wb") as file:
            for chunk in self._store.get(_key(tenant, digest)).stream(min_chunk_size=CHUNK):
                file.write(chunk)

    def read(self, tenant: str, digest: str, start: int, length: int) -> bytes:
        return bytes(self._store.get_range(_key(tenant, digest), start=start, length=length))

    def size(self, tenant: str, digest: str) -> int:
        """Raises FileNotFoundError where there is no such blob."""
        return int(self._store.head(_key(tenant, digest))["size"])

    async def stream(self, tenant: str, digest: str) -> AsyncIterator[bytes]:
        found = await self._store.get_async(_key(tenant, digest))
        async for chunk in found.stream(min_chunk_size=CHUNK):
            yield bytes(chunk)

    def is_reachable(self) -> bool:
        try:
            next(iter(self._store.list(chunk_size=1)), None)
        except Exception as error:
            log.warning("store.unreachable", error=str(error))
            return False
        return True


def _key(tenant: str, digest: str) -> str:
    return f"{tenant}/{digest}"


def hash_file(path: Path) -> Kept:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Kept(digest=digest, size=path.stat().st_size)


def record_blob(session: Session, tenant: str, kept: Kept) -> None:
    """The same bytes again are the same blob."""
    insert = (sqlite if session.get_bind().dialect.name == "sqlite" else postgresql).insert
    row = insert(Blob).values(tenant=tenant, digest=kept.digest, size=kept.size)
    session.execute(row.on_conflict_do_nothing())


def record_products(session: Session, tenant: str, job_id: str, attempt: int, products: list[Product]) -> None:
    """What this attempt made takes the place of what an earlier one left."""
    session.execute(delete(Artifact).where(Artifact.job_id == job_id, Artifact.role == "product"))
    for product in products:
        record_blob(session, tenant, product.kept)
        session.add(_row(job_id, attempt, "product", product))


RESUME_POINTS_KEPT = 2


def record_resume_point(session: Session, tenant: str, job_id: str, attempt: int, point: Product) -> None:
    record_blob(session, tenant, point.kept)
    session.merge(_row(job_id, attempt, "resume_point", point))
    session.flush()
    for old in resume_points(session, job_id)[RESUME_POINTS_KEPT:]:
        session.delete(old)


def resume_points(session: Session, job_id: str) -> list[Artifact]:
    """Newest first: their names carry the step."""
    statement = select(Artifact).where(Artifact.job_id == job_id, Artifact.role == "resume_point")
    return list(session.scalars(statement.order_by(Artifact.name.desc())))


def products_of(session: Session, job_id: str) -> list[Artifact]:
    statement = select(Artifact).where(Artifact.job_id == job_id, Artifact.role == "product").order_by(Artifact.name)
    return list(session.scalars(statement))


def _row(job_id: str, attempt: int, role: str, product: Product) -> Artifact:
    return Artifact(
        job_id=job_id,
        name=product.name,
        role=role,
        media_type=product.media_type,
        digest=product.kept.digest,
        size=product.kept.size,
        attempt=attempt,
    )
