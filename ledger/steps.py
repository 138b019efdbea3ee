"""The states of a job as a table, and the one statement that takes a step in it. `ledger.lifecycle` says when."""

from typing import Any

from sqlalchemy import ColumnElement, update
from sqlalchemy.orm import Session

from ledger import announcements, events, mirrors, webhook_events
from ledger.clock import now
from ledger.tables import Job

TRANSITIONS: dict[str, frozenset[str]] = {
    "waiting": frozenset({"queued", "cancelled"}),  # for its children; see `ledger.parents`
    "queued": frozenset({"running", "cancelled"}),
    "running": frozenset({"succeeded", "failed", "cancelled", "queued", "waiting"}),  # the last: it was split
    "succeeded": frozenset(),
    "failed": frozenset({"queued", "waiting"}),
    "cancelled": frozenset({"queued", "waiting"}),
}
TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
UNFINISHED = frozenset(TRANSITIONS) - TERMINAL


def move(
    session: Session,
    job_id: Any,
    source: str,
    target: str,
    *where: ColumnElement[bool],
    data: dict[str, Any],
    **values: Any,
) -> Job | None:
    """One step of the table, with its event, and at an end with what webhooks are told of it.

    None: the job was not (or no longer) as it had to be.
    """
    if target not in TRANSITIONS[source]:
        raise ValueError(f"no job goes from {source} to {target}")
    if target == "queued":
        values["queued_at"] = now()
    job = session.scalars(
        update(Job)
        .where(Job.id == job_id, Job.state == source, *where)
        .values(state=target, seq=Job.seq + 1, **values)
        .returning(Job)
        .execution_options(synchronize_session=False, populate_existing=True)
    ).one_or_none()
    if job is not None:
        events.write(session, job.id, job.attempt, job.seq, [("state", {"state": target, **data})])
        if target in TERMINAL:
            webhook_events.write(session, job)
            announcements.job_ended(session, job)
        if source in TERMINAL:
            mirrors.wake(session, job.id)
    return job
