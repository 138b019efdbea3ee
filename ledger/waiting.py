"""How long jobs wait for a worker. While a task waits for its learner's turn, no worker could have taken it."""

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session, aliased

from ledger import turns
from ledger.clock import now
from ledger.steps import TERMINAL
from ledger.tables import Job

QUEUES = ("cpu", "gpu")
LOOKED_AT = 100  # the next in line, and those behind it: a job that is put back again and again stays at the head
_other = aliased(Job)


def oldest(session: Session) -> dict[str, float]:
    """By queue, the seconds that the job has waited that waits longest; 0 where none does."""
    return {queue: _oldest(session, queue) for queue in QUEUES}


def since(session: Session, job: Job) -> float:
    """When this job, just claimed, could first have been."""
    queued_at = job.queued_at or job.created_at
    if job.learner_id is None:
        return queued_at
    turn_at = session.scalar(select(func.max(Job.ended_at)).where(Job.learner_id == job.learner_id, _ended(Job)))
    return max(queued_at, turn_at or 0.0)


def _oldest(session: Session, queue: str) -> float:
    ready = (Job.state == "queued", Job.queue == queue, turns.is_its_turn())
    first = select((now() - _ready_at()).label("waited")).where(*ready).order_by(Job.id).limit(LOOKED_AT).subquery()
    return max(0.0, session.scalar(select(func.max(first.c.waited))) or 0.0)


def _ready_at() -> ColumnElement[float]:
    """Asked of a row of `job`."""
    ended = select(func.max(_other.ended_at)).where(_other.learner_id == Job.learner_id, _ended(_other))
    turn_at = ended.correlate(Job).scalar_subquery()
    queued_at = func.coalesce(Job.queued_at, Job.created_at)
    return case((turn_at > queued_at, turn_at), else_=queued_at)


def _ended(job: type[Job]) -> ColumnElement[bool]:
    return job.state.in_(TERMINAL)
