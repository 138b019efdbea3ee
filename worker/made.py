"""The network that a job made, as a tracking server keeps it: the weights, and an ONNX graph of it where it has one."""

import json
import queue
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import parse_image_shape
from ledger.tables import Flashcards, Job, Learner, Model, Version
from ledger.tracking.mlmodel import GRAPH, WEIGHTS
from ledger.tracking.tracker import TrackedModel
from worker.child import Child, LogLine
from worker.messages import Drawing, Said, SaidDone, SaidFailed, StagedModel
from worker.station import Station

DRAW_SECONDS = 120
log = structlog.get_logger()


@dataclass(frozen=True)
class Made:
    digest: str
    architecture: dict[str, Any]
    input: str
    range: list[Any]
    made_at: float
    tags: dict[str, str]


def made_by(session: Session, job: Job) -> Made | None:
    """None: it makes none, or it is gone."""
    match job.kind:
        case "train" | "distill":
            made = (Model.job_id == job.id, Model.origin == job.kind)
            model = session.scalar(select(Model).where(Model.tenant == job.tenant, *made))
            return None if model is None else _of_model(session, model, job)
        case "learn":
            number = (job.result or {}).get("version")
            version = None if number is None else session.get(Version, (job.learner_id, number))
            return None if version is None else _of_version(session, version)
    return None


def _of_model(session: Session, model: Model, job: Job) -> Made:
    tags = {"flashcards.model": model.id, "flashcards.digest": model.digest}
    cards = session.get(Flashcards, job.spec.get("flashcards") or "")
    if cards is not None:
        tags["flashcards.recipe"] = json.dumps(cards.recipe)
    return Made(model.digest, model.architecture, model.input, model.range, model.created_at, tags)


def _of_version(session: Session, version: Version) -> Made | None:
    learner = session.get_one(Learner, version.learner_id)
    if learner.input is None:
        return None
    tags = {
        "flashcards.learner": learner.id,
        "flashcards.version": str(version.number),
        "flashcards.digest": version.digest,
        "flashcards.recipe": json.dumps(version.recipes),
    }
    architecture = version.architecture or learner.architecture
    return Made(version.digest, architecture, learner.input, learner.range, version.created_at, tags)


def fetch(station: Station, tenant: str, made: Made, folder: Path) -> TrackedModel:
    """Its files, in the folder. Raises FileNotFoundError where the weights are gone, and StoreAway."""
    weights = folder / WEIGHTS
    station.store.fetch(tenant, made.digest, weights)
    low, high = made.range
    staged = StagedModel(
        path=str(weights),
        digest=made.digest,
        architecture=made.architecture,
        input=made.input,
        range=(low, high),
        made_here=True,
    )
    drawn = _draw(station, staged, folder)
    return TrackedModel(
        architecture=architecture_spec.validate_python(made.architecture),
        input=parse_image_shape(made.input),
        range=(low, high),
        made_at=made.made_at,
        files={WEIGHTS: weights, **({GRAPH: folder / GRAPH} if drawn else {})},
        graph_off_by=drawn.result["max_abs_difference"] if drawn else None,
    )


def _draw(station: Station, model: StagedModel, folder: Path) -> SaidDone | None:
    """By a runner, since only runners know networks; at the lowest priority, beside whatever runs here."""
    child = station.parent.bear()
    try:
        child.assign(Drawing(draw=model, out=str(folder)))
        last = _wait(child)
    finally:
        child.close()
    if isinstance(last, SaidDone):
        return last
    why = last.error.detail if isinstance(last, SaidFailed) else "it did not say why"
    log.warning("mirror.no_graph", architecture=model.architecture.name, error=why)
    return None


def _wait(child: Child) -> Said | LogLine | None:
    """Its last word, or whatever it said last in the time that it has."""
    deadline = time.monotonic() + DRAW_SECONDS
    last: Said | LogLine | None = None
    while time.monotonic() < deadline and (child.exit_code() is None or not child.heard.empty()):
        try:
            last = child.heard.get(timeout=0.05)
        except queue.Empty:
            continue
        if isinstance(last, SaidDone | SaidFailed):
            return last
    return last
