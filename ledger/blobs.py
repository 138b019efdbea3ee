"""Whatever the record refers to is in the store. How that holds while others upload, delete and collect.

A blob is a row here and an object in the store. Models, datasets, flashcards, versions of learners, artifacts and
parts of uploads refer to it by digest. The row is the lock: who makes a reference and who collects take turns on it.

- Before bytes are put, the row is written and touched in a transaction of its own (`announce`), so that a collector
  finds it fresh for the length of the grace. The bytes are put always, also where the row was there.
- A reference is made in a transaction that also touches the row, which locks it, and then looks for the object
  (`referring`). No row, or no object: it was collected in between, nothing is written, and whoever has the file starts
  from the beginning.
- The collector (`ledger.collector`) locks the row first. Only then, in a statement of its own that sees all that was
  committed before, does it ask whether anything refers to the blob and whether it is old enough. If not needed, it
  deletes the row, deletes the object, and commits.

So an object goes only under the row's lock, after nothing was seen to refer to it; and a reference is committed only
under the same lock, after the object was seen. Of the two, one comes first: either the collector sees the reference,
or the reference finds no object. This needs no grace at all; the grace spares an upload from starting over. A
collector that dies before its commit leaves a row without an object: it makes no reference valid, the next upload puts
the bytes again, and the next round removes the row. An object without a row (an upload that was killed after the row
was collected) is given a row by the collector's slower look at the store, and goes the same way.

On SQLite the lock is the database's write lock; on PostgreSQL it is the row's.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, String, cast, exists, null, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ledger.clock import now
from ledger.db import Database
from ledger.errors import StoreAway
from ledger.store import Kept, Store
from ledger.tables import (
    Artifact,
    Blob,
    Dataset,
    Flashcards,
    Job,
    Model,
    Upload,
    UploadPart,
    Version,
    VersionCapsule,
)

TRIES = 5
GRACE_TOO_SHORT = "the file was collected before it was on record: the grace is shorter than an upload takes"
Made = TypeVar("Made")


class Collected(Exception):
    """The blob went between the put and the reference."""


@dataclass(frozen=True)
class Reference:
    """One way in which the record refers to a blob, and what to call who does."""

    tenant: Any
    digest: Any
    name: Any
    until: Any = null()  # noqa: RUF009 (a constant of the database)
    where: tuple[ColumnElement[bool], ...] = ()


# Asked for each artifact, and not joined: a planner may start from all jobs of a tenant, and never come back.
_tenant = select(Job.tenant).where(Job.id == Artifact.job_id).correlate(Artifact).scalar_subquery()
_ended_at = select(Job.ended_at).where(Job.id == Artifact.job_id).correlate(Artifact).scalar_subquery()
_name = Artifact.job_id + "/" + Artifact.name
_version = Version.learner_id + "/versions/" + cast(Version.number, String)
_part = UploadPart.upload_id + "/parts/" + cast(UploadPart.number, String)
_goes_at = select(Upload.expires_at).where(Upload.id == UploadPart.upload_id).correlate(UploadPart).scalar_subquery()
_capsule = VersionCapsule.learner_id + "/versions/" + cast(VersionCapsule.number, String) + "/capsules/"

REFERENCES: dict[str, tuple[Reference, ...]] = {
    "models": (
        Reference(Model.tenant, Model.digest, Model.id),
        Reference(Model.tenant, Model.probe_digest, Model.id + "/probe"),
        Reference(Model.tenant, Model.capsule_digest, Model.id + "/capsule"),
    ),
    "datasets": (Reference(Dataset.tenant, Dataset.digest, Dataset.id, Dataset.expires_at),),
    "flashcards": (
        Reference(Flashcards.tenant, Flashcards.digest, Flashcards.id, where=(Flashcards.materialised.is_(True),)),
        Reference(Flashcards.tenant, Flashcards.sheet_digest, Flashcards.id + "/sheet.png"),
    ),
    "learners": (
        Reference(Version.tenant, Version.digest, _version),
        Reference(Version.tenant, Version.state_digest, _version + "/state"),
        Reference(Version.tenant, Version.images_digest, _version + "/images"),
        Reference(Version.tenant, Version.autoencoder_digest, _version + "/autoencoder"),
        Reference(VersionCapsule.tenant, VersionCapsule.digest, _capsule + cast(VersionCapsule.task, String)),
    ),
    "artifacts": (Reference(_tenant, Artifact.digest, _name, where=(Artifact.role == "product",)),),
    "resume_points": (Reference(_tenant, Artifact.digest, _name, _ended_at, (Artifact.role == "resume_point",)),),
    "uploads": (Reference(UploadPart.tenant, UploadPart.digest, _part, _goes_at),),
}
#: Without what is on its way, and goes when it has arrived.
ARRIVED = {kind: references for kind, references in REFERENCES.items() if kind != "uploads"}


def is_needed(by: Mapping[str, tuple[Reference, ...]] = REFERENCES) -> ColumnElement[bool]:
    """Does anything refer to this row of `blob`?"""
    chosen = [reference for references in by.values() for reference in references]
    return or_(
        *(
            exists().where(each.tenant == Blob.tenant, each.digest == Blob.digest, *each.where).correlate(Blob)
            for each in chosen
        )
    )


def announce(db: Database, tenant: str, kept: Kept) -> None:
    insert = (sqlite if db.is_sqlite else postgresql).insert
    row = insert(Blob).values(tenant=tenant, digest=kept.digest, size=kept.size)
    with db.write() as session:
        session.execute(row.on_conflict_do_update(index_elements=["tenant", "digest"], set_={"touched_at": now()}))


def put(db: Database, store: Store, tenant: str, kept: Kept, path: Path) -> None:
    announce(db, tenant, kept)
    store.put(tenant, kept.digest, path)


@contextmanager
def referring(db: Database, store: Store, tenant: str, kept: Iterable[Kept]) -> Iterator[Session]:
    """A transaction that refers to blobs which were put before. Raises Collected where one of them has gone."""
    with db.write() as session:
        yield session
        session.flush()
        # In order, so that two that refer to the same blobs wait for each other and not for ever.
        for digest in sorted({each.digest for each in kept}):
            _hold(session, store, tenant, digest)


def keep(db: Database, store: Store, tenant: str, kept: Kept, path: Path, record: Callable[[Session], Made]) -> Made:
    return keep_all(db, store, tenant, {kept: path}, record)


def keep_all(
    db: Database, store: Store, tenant: str, files: Mapping[Kept, Path], record: Callable[[Session], Made]
) -> Made:
    """Put the files, then write down who refers to them; from the beginning if one was collected in between."""
    for _ in range(TRIES):
        for kept, path in files.items():
            put(db, store, tenant, kept, path)
        try:
            with referring(db, store, tenant, files) as session:
                return record(session)
        except Collected:
            continue
    raise StoreAway(passes=True, detail=GRACE_TOO_SHORT)


def let_go(session: Session, tenant: str, digests: Iterable[str | None], *, at_once: bool = False) -> None:
    """A reference has gone. From here the grace runs, unless there is to be none."""
    for digest in sorted({digest for digest in digests if digest is not None}):
        row = update(Blob).where(Blob.tenant == tenant, Blob.digest == digest)
        session.execute(row.values(touched_at=0.0 if at_once else now()).execution_options(synchronize_session=False))


def _hold(session: Session, store: Store, tenant: str, digest: str) -> None:
    row = update(Blob).where(Blob.tenant == tenant, Blob.digest == digest).values(touched_at=now())
    if not session.execute(row.returning(Blob.digest).execution_options(synchronize_session=False)).all():
        raise Collected(digest)
    try:
        store.size(tenant, digest)
    except FileNotFoundError:
        raise Collected(digest) from None
