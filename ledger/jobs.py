"""The verbs on a job that do not change its state."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from flashcards.contract.resources import Progress
from flashcards.contract.specs import AnySpec
from ledger import events, lifecycle, mirrors, scope
from ledger.admission import Admitted
from ledger.db import Database
from ledger.ids import new_id
from ledger.lifecycle import Caller, Claim, Pulse
from ledger.steps import UNFINISHED
from ledger.tables import Attempt, Job, JobInput, Metric

# Statements of the busiest path, built once and run below the ORM: its bookkeeping would double the time of a POST.
INSERT_JOB = insert(Job.__table__).returning(Job.created_at)  # type: ignore[arg-type]
INSERT_INPUT = insert(JobInput.__table__)  # type: ignore[arg-type]


def create(
    session: Session,
    tenant: str,
    spec: AnySpec,
    admitted: Admitted,
    key_id: str | None = None,
    parent_id: str | None = None,
    caller: Caller = Caller(),
) -> Job:
    """The row and its first event, in the caller's transaction."""
    state = "waiting" if spec.kind in lifecycle.PARENTS else "queued"
    values = {
        "id": new_id("job"),
        "tenant": tenant,
        "key_id": key_id,
        "kind": spec.kind,
        "parent_id": parent_id,
        "request_id": caller.request_id,
        "trace": caller.trace,
        "learner_id": admitted.learner,
        "queue": admitted.queue,
        "state": state,
        "spec": spec.model_dump(mode="json"),
        "labels": dict(spec.labels),
        "max_attempts": spec.max_attempts,
        "timeout_seconds": spec.timeout_seconds,
        "progress": Progress().model_dump(mode="json"),
        "seq": 1,
    }
    connection = session.connection()
    created_at = connection.execute(INSERT_JOB, values).scalar_one()
    job = Job(**values, created_at=created_at)
    if admitted.inputs:
        connection.execute(INSERT_INPUT, [{"job_id": job.id, "resource_id": id} for id in admitted.inputs])
    events.write(session, job.id, 0, 1, [("state", {"state": state})])
    if admitted.mirrored:
        mirrors.add(session, job.id)
    return job


def queue_position(session: Session, job: Job) -> int | None:
    if job.state != "queued":
        return None
    ahead = select(func.count()).where(Job.state == "queued", Job.queue == job.queue, Job.id < job.id)
    return 1 + (session.scalar(ahead) or 0)


def attempts_of(session: Session, job_id: str) -> Sequence[Attempt]:
    return session.scalars(select(Attempt).where(Attempt.job_id == job_id).order_by(Attempt.number)).all()


def metrics_of(session: Session, job_id: str) -> Sequence[Metric]:
    """By name and step. Where two attempts passed the same step, the later one is the truth."""
    statement = select(Metric).where(Metric.job_id == job_id).order_by(Metric.name, Metric.step, Metric.attempt)
    newest = {(row.name, row.step): row for row in session.scalars(statement)}
    return list(newest.values())


def needed_by(session: Session, tenant: str, resource_id: str) -> str | None:
    """An unfinished job that reads this resource, if there is one."""
    statement = (
        select(Job.id)
        .join(JobInput, JobInput.job_id == Job.id)
        .where(JobInput.resource_id == resource_id, Job.tenant == tenant, Job.state.in_(UNFINISHED))
        .limit(1)
    )
    return session.scalar(statement)


@dataclass
class Reports:
    """What a runner said since the last look."""

    entries: list[events.Entry] = field(default_factory=list)
    progress: dict[str, Any] | None = None
    metrics: list[tuple[int, dict[str, float]]] = field(default_factory=list)


def record(db: Database, claim: Claim, lease_seconds: float, reports: Reports) -> Pulse | None:
    """Write down what the runner said and renew the lease, in one commit. None: the claim is lost."""
    with db.write() as session:
        pulse = lifecycle.renew(session, claim, lease_seconds)
        if pulse is None:
            return None
        _write(session, claim, reports)
        return pulse


def _write(session: Session, claim: Claim, reports: Reports) -> None:
    entries = list(reports.entries)
    values: dict[str, Any] = {}
    if reports.progress is not None:
        entries.append(("progress", reports.progress))
        values["progress"] = reports.progress
    if entries:
        events.append(session, claim.job_id, entries, *lifecycle.mine(claim), **values)
    rows = {
        (name, step): {
            "job_id": claim.job_id,
            "attempt": claim.attempt,
            "name": name,
            "step": step,
            "value": value,
        }
        for step, metrics in reports.metrics
        for name, value in metrics.items()
    }
    for row in rows.values():
        session.merge(Metric(**row))


def find(session: Session, tenant: str, job_id: str) -> Job:
    return scope.find(session, Job, tenant, job_id)
