"""Gathers what the learners of a comparison came to."""

from collections.abc import Sequence
from itertools import groupby

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.resources import Failure
from flashcards.contract.specs import CompareSpec, LearnSpec
from ledger import matrix, parents
from ledger.lifecycle import Claim
from ledger.tables import Event, Job, Learner
from ledger.versions import chain
from worker.messages import StagedUnit
from worker.station import Station


def stage(station: Station, claim: Claim, spec: CompareSpec) -> list[StagedUnit]:
    with station.db.read() as session:
        children = parents.children(session, claim.job_id)
        units = groupby(children, lambda child: child.learner_id or "")  # they were made unit by unit
        return [_unit(session, spec, learner_id, list(jobs)) for learner_id, jobs in units]


def _unit(session: Session, spec: CompareSpec, learner_id: str, jobs: Sequence[Job]) -> StagedUnit:
    learner, task = session.get_one(Learner, learner_id), LearnSpec.model_validate(jobs[0].spec)
    versions = chain(session, learner)
    return StagedUnit(
        strategy=spec.strategies.index(task.strategy),
        seed=task.seed,
        matrix=matrix.assemble(learner, versions),
        keeps_data=any(version.keeps_data for version in versions),
        failed=_why(session, jobs),
    )


def _why(session: Session, jobs: Sequence[Job]) -> str | None:
    """The first task that did not come to its end, and its reason: those after it were not tried."""
    for number, job in enumerate(jobs, 1):
        if job.state != "succeeded":
            return f"task {number} {job.state}: {_reason(session, job)} ({job.id})"
    return None


def _reason(session: Session, job: Job) -> str:
    if job.error is not None:
        error = Failure.model_validate(job.error)
        return f"{error.title}. {error.detail}"
    last = session.scalar(
        select(Event).where(Event.job_id == job.id, Event.kind == "state").order_by(Event.seq.desc()).limit(1)
    )
    return str(last.data.get("reason", "it was stopped")) if last is not None else "it was stopped"
