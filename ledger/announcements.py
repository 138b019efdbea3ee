"""What is said on a queue of a caller's choice: that a job has ended, or what came of a submission.

It is written in the transaction that makes it true, and the row goes when it was said. Who dies in between leaves the
row, and it is said again: at least once, each with an id to know a second one by.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from flashcards.contract.resources import JobSummary, Problem
from flashcards.contract.submissions import Announcement as Said
from ledger.clock import now
from ledger.db import Database
from ledger.errors import Unfit
from ledger.ids import new_id
from ledger.settings import Settings
from ledger.summaries import job_summary
from ledger.tables import Announcement, Job, Submission

AT_ONCE = 50
CLAIM_SECONDS = 30.0  # whoever took a row and died has it taken over after
LONGEST_PAUSE_SECONDS = 300.0
KEEP_DAYS = 3.0
OURS = ("flashcards.", "unacked")


@dataclass(frozen=True)
class Due:
    id: str
    queue: str
    body: dict[str, Any]


def check_queue(settings: Settings, name: str, field: str = "announce") -> None:
    """Anybody's queues lie in the same broker, ours among them: a caller must not speak on those."""
    prefix = settings.announce_prefix
    if not name.startswith(prefix):
        raise Unfit(field, f"the name of such a queue begins with {prefix!r}: take {prefix + name!r}"[:300])
    if name in ("cpu", "gpu") or name.startswith(OURS):
        raise Unfit(field, f"{name!r} is a queue of the service itself")


def job_ended(session: Session, job: Job) -> None:
    """In the transaction that ends it."""
    queue = job.spec.get("announce")
    if queue is None:
        return
    submission = session.scalar(select(Submission.key).where(Submission.job_id == job.id))
    write(session, queue, f"job.{job.state}", submission, job=job_summary(job))


def write(
    session: Session,
    queue: str,
    event: str,
    submission: str | None,
    job: JobSummary | None = None,
    problem: Problem | None = None,
) -> None:
    said = Said(id=new_id("announcement"), event=event, submission=submission, job=job, problem=problem)
    session.add(Announcement(id=said.id, queue=queue, body=said.model_dump(mode="json", exclude_none=True)))
    session.flush()


def take(db: Database) -> list[Due]:
    """Those to say now, for the caller alone: others leave them be for a while."""
    with (
        db.read() as session
    ):  # asked twice a second by every worker: who finds nothing must not have kept a writer out
        if session.scalar(select(Announcement.id).where(Announcement.due_at <= now()).limit(1)) is None:
            return []
    with db.write() as session:
        oldest = (
            select(Announcement.id)
            .where(Announcement.due_at <= now())
            .order_by(Announcement.due_at)
            .limit(AT_ONCE)
            .with_for_update(skip_locked=True)
        )
        taken = update(Announcement).where(Announcement.id.in_(oldest.scalar_subquery()))
        taken = taken.values(due_at=now() + CLAIM_SECONDS, tries=Announcement.tries + 1)
        fields = (Announcement.id, Announcement.queue, Announcement.body)
        rows = session.execute(taken.returning(*fields).execution_options(synchronize_session=False))
        return sorted((Due(row.id, row.queue, row.body) for row in rows), key=lambda due: due.id)


def said(db: Database, ids: list[str]) -> None:
    with db.write() as session:
        session.execute(delete(Announcement).where(Announcement.id.in_(ids)))


def put_off(db: Database, ids: list[str]) -> None:
    """The broker did not take them: again in a moment, and later each time."""
    shorter = func.min if db.is_sqlite else func.least
    pause = shorter(Announcement.tries * Announcement.tries, LONGEST_PAUSE_SECONDS)
    with db.write() as session:
        session.execute(update(Announcement).where(Announcement.id.in_(ids)).values(due_at=now() + pause))


def forget(db: Database) -> int:
    """Those that nobody could be told for days."""
    with db.write() as session:
        old = Announcement.created_at < now() - KEEP_DAYS * 86400
        return int(session.execute(delete(Announcement).where(old)).rowcount)  # type: ignore[attr-defined]
