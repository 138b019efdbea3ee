"""A parent waits for its children, and goes to the queue when the last of them has ended.

Every step of a child but its claim is taken with the parent's row locked, and the parent is locked first. So of two
children that end at the same moment the second sees the first, and nobody waits for each other in a circle.

A unit is what one learner does for its parent: task after task. Once one of them has not come to its end, those that
wait behind it are of no use. Shards (`ledger.shards`) are of use only all together.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session, aliased

from flashcards.contract.resources import Progress
from ledger import artifacts, blobs, events, turns
from ledger.clock import now
from ledger.db import Database
from ledger.errors import Conflict
from ledger.steps import TERMINAL, UNFINISHED, move
from ledger.tables import Job

TOLD_FROM = 0.005  # a smaller step forward is not worth an event
CALLED = {"learn": "task", "shard": "shard"}
_child = aliased(Job)


def lock(session: Session, job_id: str) -> None:
    """Of the parent, if this job has one."""
    parent = select(_child.parent_id).where(_child.id == job_id).scalar_subquery()
    session.execute(select(Job.id).where(Job.id == parent).with_for_update())


def child_ended(session: Session, child: Job) -> None:
    """In the transaction that ended it, and under the lock."""
    if child.parent_id is None:
        return
    if child.state != "succeeded" and child.kind == "shard":
        cancel_children(session, child.parent_id, f"{child.id}, another shard of the same cards, was not made")
    elif child.state != "succeeded":
        _cancel_queued(session, Job.learner_id == child.learner_id, reason=f"{child.id}, before it, was not learnt")
    tell(session, child.parent_id)
    advance(session, child.parent_id)


def advance(session: Session, parent_id: str) -> bool:
    """To the queue, if there is nothing left to wait for."""
    data = {"reason": "all that it waited for has ended"}
    return move(session, parent_id, "waiting", "queued", ~_has_unfinished(), data=data, rung_at=None) is not None


def look_after(db: Database) -> int:
    """What the reaper does: parents whose last child ended unseen go on, and the others say how far they are."""
    with db.read() as session:
        waiting = session.execute(select(Job.id, _has_unfinished()).where(Job.state == "waiting")).all()
    advanced = 0
    for parent_id, has_unfinished in waiting:
        with db.write() as session:
            session.execute(select(Job.id).where(Job.id == parent_id).with_for_update())
            tell(session, parent_id)
            advanced += not has_unfinished and advance(session, parent_id)
    return advanced


def tell(session: Session, parent_id: str) -> None:
    """How far the children are together, if that has changed. Under the lock: `seq` is taken one by one."""
    before = session.scalar(select(Job.progress).where(Job.id == parent_id))
    cards = Job.spec["count"].as_integer().label("cards")
    columns = (Job.kind, Job.state, Job.progress, Job.started_at, Job.ended_at, cards)
    told = _progress(session.execute(select(*columns).where(Job.parent_id == parent_id)).all())
    same_step = told.unit == "cards" or (before is not None and told.step == before["step"])
    if before is None or (same_step and abs(told.fraction - before["fraction"]) < TOLD_FROM):
        return
    progress = told.model_dump(mode="json", exclude_none=True)
    events.append(session, parent_id, [("progress", progress)], Job.state == "waiting", progress=progress)


def children(session: Session, parent_id: str) -> Sequence[Job]:
    """In the order in which they were made: unit by unit, task by task."""
    statement = select(Job).where(Job.parent_id == parent_id).order_by(Job.id)
    return session.scalars(statement.execution_options(populate_existing=True)).all()


def has_children(session: Session, parent_id: str) -> bool:
    return session.scalar(select(Job.id).where(Job.parent_id == parent_id).limit(1)) is not None


def forget_children(session: Session, parent: Job) -> None:
    """With what they have made."""
    for child in children(session, parent.id):
        blobs.let_go(session, parent.tenant, artifacts.digests_of(session, child.id))
        session.delete(child)
    session.flush()


def cancel_children(session: Session, parent_id: str, reason: str = "the job that it belongs to was cancelled") -> None:
    """Those that wait end here; those that run are stopped by their workers."""
    _cancel_queued(session, Job.parent_id == parent_id, reason=reason)
    running = select(Job.id).where(Job.parent_id == parent_id, Job.state == "running").order_by(Job.id)
    for job_id in session.scalars(running).all():
        open_still = (Job.state == "running", Job.cancel_requested_at.is_(None))
        events.append(session, job_id, [("note", {"text": reason})], *open_still, cancel_requested_at=now())


def retry_children(session: Session, parent_id: str, fresh: dict[str, Any]) -> None:
    """Those that did not come to their end, each from its last resume point."""
    if session.scalar(select(Job.id).where(Job.id == parent_id, _has_unfinished())):
        raise Conflict("some of its children are still being stopped: retry once they have ended")
    for child in children(session, parent_id):
        if child.state != "succeeded":
            move(session, child.id, child.state, "queued", data={"reason": "retried by the user"}, **fresh)


def to_ring_for(session: Session, parent_id: str, limit: int) -> list[tuple[str, str]]:
    """Children whose turn it is, and their queues."""
    ready = (Job.parent_id == parent_id, Job.state == "queued", turns.is_its_turn())
    return [(row.id, row.queue) for row in session.execute(select(Job.id, Job.queue).where(*ready).limit(limit))]


def check_no_parent(job: Job, verb: str) -> None:
    if job.parent_id is not None:
        raise Conflict(f"it is a {CALLED.get(job.kind, 'part')} of {job.parent_id}: {verb} that one")


def check_ended(session: Session, parent_id: str) -> None:
    unfinished = select(func.count()).where(Job.parent_id == parent_id, Job.state.in_(UNFINISHED))
    if count := session.scalar(unfinished):
        raise Conflict(f"{count} of its children have not ended: wait for them")


def _cancel_queued(session: Session, *where: ColumnElement[bool], reason: str) -> None:
    queued = select(Job.id).where(*where, Job.parent_id.is_not(None), Job.state == "queued").order_by(Job.id)
    for job_id in session.scalars(queued).all():
        move(session, job_id, "queued", "cancelled", data={"reason": reason}, ended_at=now())


def _has_unfinished() -> ColumnElement[bool]:
    """Asked of a row of `job`."""
    return exists().where(_child.parent_id == Job.id, _child.state.in_(UNFINISHED)).correlate(Job)


def _progress(jobs: Sequence[Any]) -> Progress:
    return _progress_of_shards(jobs) if jobs and jobs[0].kind == "shard" else _progress_of_tasks(jobs)


def _progress_of_shards(jobs: Sequence[Any]) -> Progress:
    """In cards; what is left goes as fast as those that run do together."""
    steps = sum(job.cards for job in jobs)
    made = sum(job.cards if job.state == "succeeded" else job.progress.get("step", 0) for job in jobs)
    rate = sum(job.progress.get("rate") or 0.0 for job in jobs if job.state == "running")
    return Progress(
        fraction=made / steps,
        step=made,
        steps=steps,
        unit="cards",
        rate=rate or None,
        eta_seconds=(steps - made) / rate if rate else None,
    )


def _progress_of_tasks(jobs: Sequence[Any]) -> Progress:
    """The time left is guessed from the tasks that have ended, and from how many run beside each other.

    Before the first has ended, from what those say that run.
    """
    ended = [job for job in jobs if job.state in TERMINAL]
    running = [job for job in jobs if job.state == "running"]
    parts = [job.progress.get("fraction", 0.0) for job in jobs if job.state not in TERMINAL]
    took = [job.ended_at - job.started_at for job in ended if job.ended_at and job.started_at]
    took = took or [whole for job in running if (whole := _whole_seconds(job.progress)) is not None]
    left = sum(1 - part for part in parts)
    each = sum(took) / len(took) if took else None
    return Progress(
        fraction=(len(ended) + sum(parts)) / len(jobs) if jobs else 1.0,
        step=len(ended),
        steps=len(jobs),
        unit="tasks",
        eta_seconds=None if each is None else each * left / max(1, len(running)),
    )


def _whole_seconds(progress: dict[str, Any]) -> float | None:
    """Of a task that is under way, by its own guess of the time left."""
    fraction, left = progress.get("fraction", 0.0), progress.get("eta_seconds")
    return None if left is None or fraction >= 1 else float(left / (1 - fraction))
