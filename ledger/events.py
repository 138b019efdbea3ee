"""The append-only history of a job. `seq` counts from 1 and is taken under the job's row, so it has no gaps."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, insert, select, update
from sqlalchemy.orm import Session

from ledger.tables import Event, Job

INSERT = insert(Event.__table__)  # type: ignore[arg-type]
Entry = tuple[str, dict[str, Any]]


def append(session: Session, job_id: str, entries: Sequence[Entry], *where: ColumnElement[bool], **values: Any) -> bool:
    """Add entries and set columns of the job in one stroke, if the job is still as `where` says."""
    row = session.execute(
        update(Job)
        .where(Job.id == job_id, *where)
        .values(seq=Job.seq + len(entries), **values)
        .returning(Job.seq, Job.attempt)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    if row is None:
        return False
    write(session, job_id, row.attempt, row.seq, entries)
    return True


def write(session: Session, job_id: str, attempt: int, last_seq: int, entries: Sequence[Entry]) -> None:
    first = last_seq - len(entries) + 1
    rows = [
        {"job_id": job_id, "seq": first + place, "kind": kind, "attempt": attempt, "data": data}
        for place, (kind, data) in enumerate(entries)
    ]
    if rows:
        session.connection().execute(INSERT, rows)


def after(session: Session, job_id: str, seq: int, limit: int = 500) -> Sequence[Event]:
    statement = select(Event).where(Event.job_id == job_id, Event.seq > seq).order_by(Event.seq).limit(limit)
    return session.scalars(statement).all()


def of_kind(session: Session, job_id: str, kind: str) -> Sequence[Event]:
    statement = select(Event).where(Event.job_id == job_id, Event.kind == kind).order_by(Event.seq)
    return session.scalars(statement).all()
