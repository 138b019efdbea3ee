"""What is to be mirrored to a tracking server: one row a job, written with the job.

It is an outbox without copies: a row says how far the server knows the job, and the rest is on record. A worker takes
a row by putting off when it is due, so that of any number one has it, and one that dies gives it back in time.
"""

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from flashcards.contract.specs import JobSpec
from ledger import events
from ledger.clock import now
from ledger.db import Database
from ledger.errors import Unfit
from ledger.settings import Settings
from ledger.tables import Job, Mirror
from ledger.tracking import may_use

HELD_SECONDS = 120.0  # longer than what a job said since the last look takes to be told


def wanted(settings: Settings, tenant: str, spec: JobSpec) -> bool:
    """Is this job to be mirrored? One that asks for what there is not is refused, before it is queued."""
    asked, allowed = spec.tracking, may_use(settings, tenant)
    if asked is not None and asked.mirror and not allowed:
        raise Unfit("tracking", "this service has no tracking server for you: its operator sets FLASHCARDS_MLFLOW_URL")
    return allowed and spec.kind != "noop" and (asked is None or asked.mirror)


def add(session: Session, job_id: str) -> None:
    session.add(Mirror(job_id=job_id, told={}))


def wake(session: Session, job_id: str) -> None:
    """The job goes on after its end."""
    _write(session, job_id, due_at=now())


def take(db: Database) -> Mirror | None:
    """The one that waits longest. A queued job has nothing to tell yet."""
    due = (
        select(Mirror.job_id)
        .join(Job, Job.id == Mirror.job_id)
        .where(Mirror.due_at <= now(), Job.state != "queued")
        .order_by(Mirror.due_at)
        .limit(1)
    )
    with db.read() as session:  # mostly there is none, and a look takes no lock
        if session.scalar(due) is None:
            return None
    with db.write() as session:
        chosen = session.scalar(due.with_for_update(skip_locked=True, of=Mirror))
        if chosen is None:
            return None
        _write(session, chosen, due_at=now() + HELD_SECONDS)
        return session.get_one(Mirror, chosen)


def hold(db: Database, job_id: str, seconds: float) -> None:
    """What comes now takes longer."""
    with db.write() as session:
        _write(session, job_id, due_at=now() + seconds)


def advance(db: Database, job_id: str, pause: float | None, note: str | None = None, **far: Any) -> None:
    """It was told: so far. `pause` until the next look; None: there is no more to tell."""
    due_at = None if pause is None else now() + pause
    with db.write() as session:
        _write(session, job_id, due_at=due_at, tries=0, warned=False, **far)
        if note is not None:
            events.append(session, job_id, [("note", {"text": note})])


def put_off(db: Database, job_id: str, pause: float | None, **far: Any) -> None:
    """It could not be told. `pause` None: it is not tried again."""
    due_at = None if pause is None else now() + pause
    with db.write() as session:
        _write(session, job_id, due_at=due_at, tries=Mirror.tries + 1, **far)


def warn(db: Database, job_id: str, text: str) -> None:
    """On the job, once until something could be told again."""
    with db.write() as session:
        row = update(Mirror).where(Mirror.job_id == job_id, ~Mirror.warned).values(warned=True)
        if session.execute(row.returning(Mirror.job_id).execution_options(synchronize_session=False)).all():
            events.append(session, job_id, [("warning", {"text": text})])


def unwarned(db: Database) -> list[str]:
    """Jobs that are due and have not been told that the server is away."""
    due = (Mirror.due_at <= now(), ~Mirror.warned, Job.state != "queued")
    with db.read() as session:
        return list(session.scalars(select(Mirror.job_id).join(Job, Job.id == Mirror.job_id).where(*due).limit(1000)))


def _write(session: Session, job_id: str, **values: Any) -> None:
    session.execute(
        update(Mirror).where(Mirror.job_id == job_id).values(**values).execution_options(synchronize_session=False)
    )
