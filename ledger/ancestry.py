"""What led to something, step by step: the jobs, and what they read."""

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.ancestry import (
    MOST_ANCESTORS,
    AncestorCards,
    AncestorDataset,
    AncestorJob,
    AncestorModel,
    Ancestry,
    Imported,
    Measured,
)
from ledger import tables
from ledger.clock import maybe_datetime
from ledger.scope import few
from ledger.tables import Dataset, Flashcards, Job, JobInput, Learner, Model
from ledger.versions import chain_to

MEASURED = 20  # evaluations that go along
LONG_RESULT = 2_000  # bytes of JSON


def of_model(session: Session, model: Model) -> Ancestry:
    """From the job that made it back to what nobody made here."""
    walk = Walk(session, model.tenant)
    walk.take_over(model.id)
    walk.follow([model.job_id] if model.job_id else [])
    return walk.found()


def of_learner(session: Session, learner: Learner, jobs: Iterable[str | None]) -> Ancestry:
    walk = Walk(session, learner.tenant)
    walk.take_over(learner.id)
    began = [id for id in (learner.model_id, learner.autoencoder_id) if id is not None]
    walk.follow([*began, *(id for id in jobs if id is not None)])
    return walk.found()


def cards_of(session: Session, tenant: str, model_id: str) -> list[AncestorCards]:
    """The newest that were captured from a model."""
    statement = few(Flashcards, tenant, Flashcards.model_id == model_id).order_by(Flashcards.id.desc())
    return [_cards(row) for row in session.scalars(statement.limit(MOST_ANCESTORS))]


def measured(session: Session, tenant: str, resource_id: str, jobs: Iterable[str | None]) -> list[Measured]:
    """What these jobs said, and the newest that evaluated it."""
    evaluated = few(Job, tenant, JobInput.resource_id == resource_id).join(JobInput, JobInput.job_id == Job.id)
    evaluated = evaluated.where(Job.kind == "evaluate", Job.state == "succeeded").order_by(Job.id.desc())
    made = select(Job).where(Job.tenant == tenant, Job.id.in_([id for id in jobs if id is not None]))
    rows = [*session.scalars(made.order_by(Job.id)), *session.scalars(evaluated.limit(MEASURED))]
    return [
        Measured(job=row.id, kind=row.kind, made_from=_inputs(session, row.id), result=_in_short(row.result))
        for row in rows[:MOST_ANCESTORS]
        if row.result is not None
    ]


def _in_short(result: dict[str, Any]) -> dict[str, Any]:
    """Figures a class, and the like, are many: of a long result only its own figures go along."""
    if len(json.dumps(result)) <= LONG_RESULT:
        return result
    return {name: value for name, value in result.items() if not isinstance(value, dict | list)}


def imported(session: Session, id: str) -> Imported | None:
    """What the bundle says that brought this model or learner."""
    row = session.get(tables.Imported, id)
    return None if row is None else Imported.model_validate(row.told)


def forget(session: Session, id: str) -> None:
    if (row := session.get(tables.Imported, id)) is not None:
        session.delete(row)


Ancestor = AncestorJob | AncestorModel | AncestorDataset | AncestorCards


class Walk:
    def __init__(self, session: Session, tenant: str) -> None:
        self._session = session
        self._tenant = tenant
        self._seen: dict[str, Ancestor] = {}  # in the order in which they were met

    def follow(self, ids: list[str]) -> None:
        """Breadth first, so that what is left out of a long story is its beginning."""
        waiting = list(ids)
        while waiting:
            id = waiting.pop(0)
            if id not in self._seen:
                waiting += self._visit(id)

    def take_over(self, id: str) -> None:
        """What its own bundle said, where it came in one: that story goes on here."""
        found = imported(self._session, id)
        if found is None:
            return
        if found.model is not None:
            self._seen[found.model.id] = found.model
        story = found.lineage
        told: tuple[Ancestor, ...] = (*story.jobs, *story.models, *story.datasets, *story.flashcards)
        for each in told:
            self._seen.setdefault(each.id, each)

    def _visit(self, id: str) -> list[str]:
        kind = id.split("_", maxsplit=1)[0]
        row: Any = self._session.get(TABLES[kind], id) if kind in TABLES else None
        if row is None or row.tenant != self._tenant:
            return []
        if isinstance(row, Job):
            inputs = _inputs(self._session, id)
            self._seen[id] = _job(row, inputs)
            return [*inputs, *self._earlier(row)]
        if isinstance(row, Model):
            self._seen[id] = _model(row)
            self.take_over(id)
            return [row.job_id] if row.job_id else []
        if isinstance(row, Flashcards):
            self._seen[id] = _cards(row)
            return [row.model_id]
        if isinstance(row, Dataset):
            self._seen[id] = _dataset(row)
        return []

    def _earlier(self, job: Job) -> list[str]:
        """A task builds on those before it, and on what the learner began with."""
        learner = None if job.learner_id is None else self._session.get(Learner, job.learner_id)
        if learner is None:
            return []
        self.take_over(learner.id)
        versions = chain_to(self._session, learner.id, job.base_version)
        began = (*(version.job_id for version in reversed(versions)), learner.model_id, learner.autoencoder_id)
        return [id for id in began if id is not None]

    def found(self) -> Ancestry:
        def those(kind: type[Any]) -> list[Any]:
            return [each for each in self._seen.values() if isinstance(each, kind)][:MOST_ANCESTORS]

        return Ancestry(
            jobs=those(AncestorJob),
            models=those(AncestorModel),
            datasets=those(AncestorDataset),
            flashcards=those(AncestorCards),
        )


TABLES: dict[str, Any] = {"job": Job, "model": Model, "dataset": Dataset, "flashcards": Flashcards}


def _inputs(session: Session, job_id: str) -> list[str]:
    read = select(JobInput.resource_id).where(JobInput.job_id == job_id).order_by(JobInput.resource_id)
    return list(session.scalars(read))


def _job(row: Job, inputs: list[str]) -> AncestorJob:
    return AncestorJob(id=row.id, kind=row.kind, spec=row.spec, made_from=inputs, ended_at=maybe_datetime(row.ended_at))


def _model(row: Model) -> AncestorModel:
    return AncestorModel(
        id=row.id,
        name=row.name,
        architecture=row.architecture,
        input=row.input,
        digest=row.digest,
        origin=row.origin,
        job=row.job_id,
    )


def _dataset(row: Dataset) -> AncestorDataset:
    counts = {name: split["count"] for name, split in row.splits.items()}
    return AncestorDataset(id=row.id, name=row.name, digest=row.digest, splits=counts)


def _cards(row: Flashcards) -> AncestorCards:
    return AncestorCards(
        id=row.id, name=row.name, model=row.model_id, job=row.job_id, recipe=row.recipe, digest=row.digest or None
    )
