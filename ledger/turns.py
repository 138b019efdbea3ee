"""A learner takes one task at a time, in the order in which they came.

A job of a learner may be claimed while no other job of it runs and none that came before it waits. A claim is one
statement, and sees the record as it was when it began: a job that is put back to the queue meanwhile could be claimed
beside the one that followed it. So who has claimed then locks the learner, and looks again (`overtaken`): of two, the
second to get the lock sees the first, and gives its claim back.
"""

from sqlalchemy import ColumnElement, exists, or_, select
from sqlalchemy.orm import Session, aliased

from ledger.tables import Job, Learner

_other = aliased(Job)


def is_its_turn() -> ColumnElement[bool]:
    """Asked of a queued row of `job`. Those without a learner never wait, and nothing is looked up for them."""
    unfinished = (_other.learner_id == Job.learner_id, _other.state.in_(("queued", "running")))  # as the index goes
    goes_first = or_(_other.id < Job.id, _other.state == "running")
    waits = exists().where(*unfinished, _other.id != Job.id, goes_first)
    return or_(Job.learner_id.is_(None), ~waits.correlate(Job))


def overtaken(session: Session, job: Job) -> bool:
    """Has another job of the same learner been claimed since this claim looked?"""
    if job.learner_id is None:
        return False
    session.execute(select(Learner.id).where(Learner.id == job.learner_id).with_for_update())
    running = (Job.learner_id == job.learner_id, Job.state == "running", Job.id != job.id)
    return session.scalar(select(Job.id).where(*running).limit(1)) is not None


def following(session: Session, learner_id: str) -> tuple[str, str] | None:
    """The job whose turn it is, and its queue: its own ring was heard, in vain, while it had to wait."""
    statement = select(Job.id, Job.queue).where(Job.learner_id == learner_id, Job.state == "queued", is_its_turn())
    found = session.execute(statement.order_by(Job.id).limit(1)).one_or_none()
    return None if found is None else (found[0], found[1])
