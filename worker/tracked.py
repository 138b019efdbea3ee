"""What a tracking server is told of a job, read from the record: settings, metrics, files, and where it came from."""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from flashcards.contract.tracking import Tracking
from ledger.names import names_of
from ledger.settings import Settings
from ledger.steps import TERMINAL
from ledger.tables import DEFAULT_TENANT, Artifact, Dataset, Event, Job, JobInput, Learner, Metric, Mirror
from ledger.tracking.tracker import Point, Run

TOLD_ELSEWHERE = frozenset({"labels", "tracking"})
SHOWN = frozenset({"image/png", "application/json", "text/csv"})  # what people look at; the rest is heavy
DEPTH = 4


@dataclass(frozen=True)
class Story:
    """A job as it stands. `told` and `seq`: how far the server knows it, once it was told this."""

    job: Job
    run: Run
    params: dict[str, str]
    tags: dict[str, str]
    points: list[Point]
    register_as: str | None
    told: dict[str, int]

    @property
    def has_ended(self) -> bool:
        return self.job.state in TERMINAL


def read(session: Session, settings: Settings, row: Mirror) -> Story:
    job = session.get_one(Job, row.job_id)  # first: what comes to the record meanwhile is told the next time
    asked = Tracking.model_validate(job.spec.get("tracking") or {})
    tags = _tags(session, job)
    points = _points(session, job, row) + _results(job)
    latest = {point.name: point.step for point in points}
    return Story(
        job=job,
        run=Run(
            job_id=job.id,
            experiment=asked.experiment or _experiment(settings, job.tenant),
            name=_name(session, job, asked),
            started_at=job.started_at or job.created_at,
            tags=tags,
        ),
        params=dict(_flat({key: value for key, value in job.spec.items() if key not in TOLD_ELSEWHERE})),
        tags=tags,
        points=points,
        register_as=asked.register_as,
        told={**row.told, **latest},
    )


def lineage(session: Session, job: Job) -> dict[str, Any]:
    """The job, what it read, and what that is called."""
    read = select(JobInput.resource_id).where(JobInput.job_id == job.id).order_by(JobInput.resource_id)
    made_from = list(session.scalars(read))
    return {"job": job.id, "made_from": made_from, "names": names_of(session, job.tenant, made_from)}


def to_show(session: Session, job: Job) -> list[Artifact]:
    """Files for people. What shows data goes nowhere, unless that data is kept here as well."""
    products = select(Artifact).where(Artifact.job_id == job.id, Artifact.role == "product")
    shown = session.scalars(products.where(Artifact.media_type.in_(SHOWN)).order_by(Artifact.name)).all()
    return [each for each in shown if not each.shows_data or _keeps_data(session, job)]


def _keeps_data(session: Session, job: Job) -> bool:
    read = select(JobInput.resource_id).where(JobInput.job_id == job.id, JobInput.resource_id.like("dataset%"))
    rows = [session.get(Dataset, id) for id in session.scalars(read).all()]
    return all(row is not None and row.retain for row in rows)


def _experiment(settings: Settings, tenant: str) -> str:
    own = settings.mlflow_experiment
    return own if tenant == DEFAULT_TENANT else f"{own}-{tenant}"


def _name(session: Session, job: Job, asked: Tracking) -> str:
    if job.parent_id is None:
        return asked.run_name or f"{job.kind} {job.id}"
    learner = session.get(Learner, job.learner_id) if job.learner_id else None
    return f"{learner.name if learner else job.kind}, {job.id}"


def _tags(session: Session, job: Job) -> dict[str, str]:
    found = {
        "flashcards.job": job.id,
        "flashcards.kind": job.kind,
        "flashcards.tenant": job.tenant,
        "flashcards.lineage": json.dumps(lineage(session, job)),
        **{f"flashcards.label.{key}": str(value) for key, value in job.labels.items()},
    }
    if recipe := (job.result or {}).get("recipe") or (job.result or {}).get("recipes"):
        found["flashcards.recipe"] = json.dumps(recipe)
    if error := job.error:
        found["flashcards.error"] = f"{error.get('title')}: {error.get('detail')}"
    parent = session.get(Mirror, job.parent_id) if job.parent_id else None
    if parent is not None and parent.run_id is not None:
        found["mlflow.parentRunId"] = parent.run_id
    return found


def _points(session: Session, job: Job, row: Mirror) -> list[Point]:
    """What was measured beyond the steps that were told. A step that another attempt passes again says the same."""
    beyond = [and_(Metric.name == name, Metric.step > step) for name, step in row.told.items()]
    new = or_(Metric.name.not_in(list(row.told)), *beyond)
    statement = select(Metric).where(Metric.job_id == job.id, new).order_by(Metric.step, Metric.name, Metric.attempt)
    newest = {(metric.name, metric.step): metric.value for metric in session.scalars(statement)}
    at = _clock(session, job, row.seq)
    return [Point(name, value, step, at(step)) for (name, step), value in newest.items()]


def _clock(session: Session, job: Job, after: int) -> Callable[[int], float]:
    """When which step was passed: metrics are written with the progress that led to them."""
    said = select(Event).where(Event.job_id == job.id, Event.seq > after, Event.kind == "progress")
    passed = session.scalars(said.order_by(Event.seq.desc()))  # of two that say the same step, the first counts
    moments = {int(event.data.get("step") or 0): event.at for event in passed}
    steps, start = sorted(moments), job.started_at or job.created_at

    def at(step: int) -> float:
        return moments[steps[min(bisect_left(steps, step), len(steps) - 1)]] if steps else start

    return at


def _results(job: Job) -> list[Point]:
    """Numbers of the result, which have no step."""
    if job.result is None or job.ended_at is None:
        return []
    return [Point(f"result.{name}", value, 0, job.ended_at) for name, value in _numbers(job.result)]


def _numbers(value: Mapping[str, Any], path: str = "", depth: int = 1) -> Iterator[tuple[str, float]]:
    for key, part in value.items():
        if isinstance(part, dict) and depth < DEPTH:
            yield from _numbers(part, f"{path}{key}.", depth + 1)
        elif isinstance(part, int | float) and not isinstance(part, bool):
            yield f"{path}{key}", float(part)


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """One parameter a leaf; a list is one as JSON."""
    for key, part in value.items():
        if isinstance(part, dict) and part:
            yield from _flat(part, f"{path}{key}.")
        elif part is not None:
            yield f"{path}{key}", part if isinstance(part, str) else json.dumps(part)
