"""What goes by itself, and when: resume points that nobody came back for, and data that is not to be kept.

Everything here may run twice, late, or in many processes at once: it asks the record what is due and does that.
"""

from dataclasses import dataclass

import structlog
from sqlalchemy import ColumnElement, and_, delete, exists, or_, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from ledger import blobs, events
from ledger.clock import now
from ledger.collector import collect
from ledger.db import Database
from ledger.steps import TERMINAL, UNFINISHED
from ledger.store import Store
from ledger.tables import Artifact, Dataset, Job, JobInput

AT_ONCE = 1_000
DAY = 86400
log = structlog.get_logger()


@dataclass(frozen=True)
class Discarded:
    """A dataset that has gone, and the blobs that are to go with it."""

    dataset_id: str
    blobs: list[tuple[str, str]]


def sweep(db: Database, store: Store) -> int:
    """Delete the datasets that are not to be kept and were read, with all that shows what was in them.

    Never raises: who calls it has done its own work, and the next round tries again.
    """
    try:
        return _sweep(db, store)
    except DBAPIError as error:
        log.warning("retention.database_away", error=str(error.orig))
        return 0


def _sweep(db: Database, store: Store) -> int:
    with db.read() as session:
        due = session.scalars(select(Dataset.id).where(_is_due()).limit(AT_ONCE)).all()
    for dataset_id in due:
        with db.write() as session:
            row = session.scalar(select(Dataset).where(Dataset.id == dataset_id, _is_due()).with_for_update())
            discarded = None if row is None else discard(session, row)
        if discarded is not None:
            collect_discarded(db, store, discarded)
    return len(due)


def discard(session: Session, row: Dataset) -> Discarded:
    """The row, and what its jobs made that shows the data. The blobs get no grace."""
    readers = session.scalars(
        select(Job.id).join(JobInput, JobInput.job_id == Job.id).where(JobInput.resource_id == row.id).order_by(Job.id)
    ).all()
    digests = {row.digest}
    for job_id in readers:
        entry = ("note", {"text": f"{row.id} and its file were deleted: its key keeps no data"})
        events.append(session, job_id, [entry])
        digests |= _forget_what_shows(session, job_id)
    session.delete(row)
    session.flush()
    blobs.let_go(session, row.tenant, digests, at_once=True)
    return Discarded(row.id, [(row.tenant, digest) for digest in sorted(digests)])


def collect_discarded(db: Database, store: Store, discarded: Discarded) -> None:
    """At once: they count as untouched since ever, unless somebody uploads the same bytes again at this moment.

    What another row still refers to stays, and what a kill leaves here is what the collector finds first.
    """
    collect(db, store, DAY, discarded.blobs)
    log.info("retention.discarded", dataset=discarded.dataset_id)


def forget_resume_points(db: Database, days: float) -> int:
    """Those of jobs that ended so long ago that nobody will retry them."""
    over = (Job.state.in_(TERMINAL), Job.ended_at < now() - days * DAY)
    with db.write() as session:
        statement = select(Artifact, Job.tenant).join(Job, Job.id == Artifact.job_id)
        rows = session.execute(statement.where(Artifact.role == "resume_point", *over).limit(AT_ONCE)).all()
        for artifact, _ in rows:
            session.delete(artifact)
        session.flush()
        for tenant, digest in sorted({(tenant, artifact.digest) for artifact, tenant in rows}):
            blobs.let_go(session, tenant, [digest])
    if rows:
        log.info("retention.resume_points", forgotten=len(rows))
    return len(rows)


def _forget_what_shows(session: Session, job_id: str) -> set[str]:
    """Resume points hold no images, but without the data there is nothing to resume."""
    telling = or_(Artifact.shows_data, Artifact.role == "resume_point")
    gone = delete(Artifact).where(Artifact.job_id == job_id, telling).returning(Artifact.digest)
    return set(session.scalars(gone.execution_options(synchronize_session=False)))


def _is_due() -> ColumnElement[bool]:
    read = and_(~Dataset.retain, _has_reader(TERMINAL))
    return and_(or_(read, Dataset.expires_at < now()), ~_has_reader(UNFINISHED))


def _has_reader(states: frozenset[str]) -> ColumnElement[bool]:
    reads = (JobInput.resource_id == Dataset.id, JobInput.job_id == Job.id, Job.state.in_(states))
    return exists().where(*reads).correlate(Dataset)
