"""The only code that changes a job's state, but for what its children do to a parent (`ledger.parents`).

A claim bumps `attempt`, the fencing token: whoever holds an older number writes to no row from then on. A lease says
how long the claim holds without a sign of life. Everything here is one conditional UPDATE, so it may run twice, late,
or in many processes at once.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, case, func, select, update
from sqlalchemy.orm import Session

from ledger import events, parents, turns, waiting
from ledger.clock import now
from ledger.db import Database
from ledger.errors import Conflict, NotFound
from ledger.steps import TERMINAL, move
from ledger.tables import Attempt, Job

PARENTS = ("compare",)  # kinds that wait for children from the beginning
OTHER_MAKE = "other-make"  # why a shard failed that no retry of it alone would help
FRESH = {
    "strikes": 0,
    "error": None,
    "result": None,
    "started_at": None,
    "ended_at": None,
    "deadline": None,
    "worker_id": None,
    "cancel_requested_at": None,
    "rung_at": None,
}


@dataclass(frozen=True)
class Caller:
    """Who asked for a job: what log lines and traces of both sides have in common."""

    request_id: str | None = None
    trace: str | None = None


@dataclass(frozen=True)
class Claim:
    job_id: str
    tenant: str
    attempt: int
    spec: dict[str, Any]
    caller: Caller = Caller()
    waited_seconds: float = 0.0  # in the queue, while it was its turn


@dataclass(frozen=True)
class Pulse:
    """What a worker learns when it renews its lease."""

    cancel_requested: bool
    overdue: bool


def mine(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return (Job.attempt == claim.attempt, Job.state == "running")


class Overtaken(Exception):
    """Another job of the same learner was claimed first."""


def claim(db: Database, queue: str, worker_id: str, lease_seconds: float, job_id: str | None = None) -> Claim | None:
    """Take this job, or the oldest of the queue whose turn it is. Of any number of claimers one gets it."""
    while True:
        try:
            return _claim(db, queue, worker_id, lease_seconds, job_id)
        except Overtaken:
            continue  # the next look sees who came first, and passes this job over


def _claim(db: Database, queue: str, worker_id: str, lease_seconds: float, job_id: str | None) -> Claim | None:
    oldest = (
        select(Job.id)
        .where(Job.state == "queued", Job.queue == queue, turns.is_its_turn())
        .order_by(Job.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    with db.write() as session:
        job = move(
            session,
            job_id or oldest,
            "queued",
            "running",
            turns.is_its_turn(),
            data={"worker": worker_id},
            attempt=Job.attempt + 1,
            worker_id=worker_id,
            lease_until=now() + lease_seconds,
            started_at=func.coalesce(Job.started_at, now()),
            deadline=func.coalesce(Job.deadline, now() + Job.timeout_seconds),
        )
        if job is None:
            return None
        if turns.overtaken(session, job):
            raise Overtaken
        job.progress = {key: value for key, value in job.progress.items() if key not in ("rate", "eta_seconds")}
        session.add(Attempt(job_id=job.id, number=job.attempt, worker_id=worker_id))
        return Claim(
            job_id=job.id,
            tenant=job.tenant,
            attempt=job.attempt,
            spec=job.spec,
            caller=Caller(job.request_id, job.trace),
            waited_seconds=max(0.0, (job.lease_until or 0.0) - lease_seconds - waiting.since(session, job)),
        )


def renew(session: Session, claim: Claim, lease_seconds: float) -> Pulse | None:
    """None: the claim is lost, whoever held it must stop."""
    row = session.execute(
        update(Job)
        .where(Job.id == claim.job_id, *mine(claim))
        .values(lease_until=now() + lease_seconds)
        .returning(Job.cancel_requested_at, case((Job.deadline < now(), 1), else_=0))
        .execution_options(synchronize_session=False)
    ).one_or_none()
    return None if row is None else Pulse(cancel_requested=row[0] is not None, overdue=bool(row[1]))


def settle(
    session: Session,
    claim: Claim,
    state: str,
    *,
    result: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
    reason: str | None = None,
) -> bool:
    """The end of an attempt that ran its course. False: somebody else holds the job by now, nothing was written."""
    data = {
        key: value for key, value in (("result", result), ("error", error), ("reason", reason)) if value is not None
    }
    ended = {"lease_until": None, "ended_at": now(), "result": result, "error": error}
    parents.lock(session, claim.job_id)
    row = move(session, claim.job_id, "running", state, Job.attempt == claim.attempt, data=data, **ended)
    if row is None:
        return False
    end_attempt(session, claim.job_id, claim.attempt, state, reason or (error or {}).get("title"))
    parents.child_ended(session, row)
    return True


def wait(session: Session, claim: Claim, reason: str) -> bool:
    """Its children go on in its place. False: somebody else holds the job by now, or it is to be cancelled."""
    cleared = {"lease_until": None, "worker_id": None, "deadline": None, "strikes": 0}
    fence = (Job.attempt == claim.attempt, Job.cancel_requested_at.is_(None))
    if move(session, claim.job_id, "running", "waiting", *fence, data={"reason": reason}, **cleared) is None:
        return False
    end_attempt(session, claim.job_id, claim.attempt, "split", reason)
    return True


def release(session: Session, claim: Claim, reason: str) -> bool:
    """Give the job back unharmed (a worker that drains): it costs no attempt."""
    return _give_back(session, claim.job_id, claim.attempt, "released", reason, strike=0)


def lose(session: Session, job_id: str, attempt: int, reason: str, *where: ColumnElement[bool]) -> bool:
    """An attempt ended without saying how. Queue the job again, unless it has no try left or was to be cancelled."""
    return _give_back(session, job_id, attempt, "lost", reason, *where, strike=1)


def _give_back(
    session: Session, job_id: str, attempt: int, outcome: str, reason: str, *where: ColumnElement[bool], strike: int
) -> bool:
    fence = (Job.attempt == attempt, *where)
    cleared = {"lease_until": None, "worker_id": None, "strikes": Job.strikes + strike}
    done = {**cleared, "ended_at": now()}
    error = {**EXHAUSTED, "detail": f"The last attempt ended because {reason}."}
    parents.lock(session, job_id)
    moved = move(session, job_id, "running", "cancelled", *fence, Job.cancel_requested_at.is_not(None), data={}, **done)
    if moved is None and strike:
        spent = Job.strikes + strike >= Job.max_attempts
        moved = move(session, job_id, "running", "failed", *fence, spent, data={"error": error}, error=error, **done)
    if moved is None:
        moved = move(session, job_id, "running", "queued", *fence, data={"reason": reason}, rung_at=None, **cleared)
    if moved is not None:
        end_attempt(session, job_id, attempt, outcome, reason)
        if moved.state in TERMINAL:
            parents.child_ended(session, moved)
    return moved is not None


EXHAUSTED = {"type": "attempts-exhausted", "title": "The job was tried again and again without getting further"}


def expire(db: Database) -> int:
    """Take back the jobs whose worker gave no sign of life until its lease ran out."""
    lapsed = Job.lease_until < now()
    with db.read() as session:
        rows = session.execute(select(Job.id, Job.attempt).where(Job.state == "running", lapsed)).all()
    count = 0
    for job_id, attempt in rows:
        with db.write() as session:
            count += lose(session, job_id, attempt, "its worker gave no sign of life", lapsed)
    return count


def shorten_leases(db: Database, lease_seconds: float) -> int:
    """A lease longer than any that is given was made before the clock was put back: its holder has one more to show
    that it lives. Left alone, the job of a dead one would wait until the clock has caught up."""
    too_long = (Job.state == "running", Job.lease_until > now() + 2 * lease_seconds)
    with db.read() as session:
        ids = session.scalars(select(Job.id).where(*too_long)).all()
    for job_id in ids:
        with db.write() as session:
            session.execute(update(Job).where(Job.id == job_id, *too_long).values(lease_until=now() + lease_seconds))
    return len(ids)


def expire_worker(db: Database, worker_id: str, reason: str) -> int:
    """Take back the jobs of a worker that was seen to die, without waiting for its leases."""
    with db.write() as session:
        held = select(Job.id, Job.attempt).where(Job.state == "running", Job.worker_id == worker_id)
        held = held.order_by(Job.parent_id, Job.id)  # parents are locked in one order, whoever does it
        return sum(lose(session, job_id, attempt, reason) for job_id, attempt in session.execute(held).all())


def request_cancel(session: Session, tenant: str, job_id: str) -> None:
    """A queued job ends here; a running one is stopped by its worker. Asking twice is asking once."""
    theirs = Job.tenant == tenant
    if (shard := session.scalar(select(Job).where(Job.id == job_id, theirs, Job.kind == "shard"))) is not None:
        parents.check_no_parent(shard, "cancel")
    ended: dict[str, Any] = {"data": {"reason": "cancelled by the user"}, "ended_at": now()}
    parents.lock(session, job_id)
    if (job := move(session, job_id, "queued", "cancelled", theirs, **ended)) is not None:
        parents.child_ended(session, job)
        return
    if move(session, job_id, "waiting", "cancelled", theirs, **ended) is not None:
        parents.cancel_children(session, job_id)
        return
    asked = events.append(
        session,
        job_id,
        [("note", {"text": "cancel requested"})],
        theirs,
        Job.state == "running",
        Job.cancel_requested_at.is_(None),
        cancel_requested_at=now(),
    )
    if not asked:
        state = _find(session, tenant, job_id).state
        if state in ("succeeded", "failed"):
            raise Conflict(f"the job has ended already: it {state}")


def retry(session: Session, tenant: str, job_id: str) -> None:
    """Back to the queue. The next attempt starts from the last resume point, if there is one.

    A parent goes back to waiting, and those of its children that did not come to their end to the queue.
    """
    job = _find(session, tenant, job_id)
    parents.check_no_parent(job, "retry")
    if job.state == "failed" and (job.error or {}).get("type") == OTHER_MAKE:
        parents.forget_children(session, job)
    target = "waiting" if parents.has_children(session, job_id) else "queued"
    for source in ("failed", "cancelled"):
        if move(session, job_id, source, target, data={"reason": "retried by the user"}, **FRESH) is None:
            continue
        if target == "waiting":
            parents.retry_children(session, job_id, FRESH)
            parents.tell(session, job_id)
            parents.advance(session, job_id)
        return
    raise Conflict(f"only a failed or cancelled job can be retried; this one is {_find(session, tenant, job_id).state}")


def end_attempt(session: Session, job_id: str, number: int, outcome: str, reason: str | None) -> None:
    session.execute(
        update(Attempt)
        .where(Attempt.job_id == job_id, Attempt.number == number)
        .values(ended_at=now(), outcome=outcome, reason=reason)
        .execution_options(synchronize_session=False)
    )


def _find(session: Session, tenant: str, job_id: str) -> Job:
    job = session.scalar(
        select(Job).where(Job.id == job_id, Job.tenant == tenant).execution_options(populate_existing=True)
    )
    if job is None:
        raise NotFound("job", job_id)
    return job
