"""Does this spec go with what exists? Asked before a job is queued, and again before it is retried."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.image import ImageShape, parse_image_shape
from flashcards.contract.resources import Split
from flashcards.contract.specs import CaptureSpec, EvaluateSpec, JobSpec, NoopSpec, TrainSpec
from ledger import scope
from ledger.clock import now
from ledger.errors import NotFound, Unfit
from ledger.settings import Settings
from ledger.tables import Dataset, Model, Worker
from ledger.workers import ALIVE_SECONDS

LIVE_GPU_WORKER = select(Worker.id).where(Worker.queue == "gpu", Worker.seen_at > now() - ALIVE_SECONDS).limit(1)


@dataclass(frozen=True)
class Admitted:
    queue: str
    inputs: list[str]


def admit(session: Session, settings: Settings, tenant: str, spec: JobSpec) -> Admitted:
    match spec:
        case TrainSpec():
            inputs = _admit_train(session, tenant, spec)
        case CaptureSpec():
            inputs = _admit_capture(session, settings, tenant, spec)
        case EvaluateSpec():
            inputs = _admit_evaluate(session, tenant, spec)
        case NoopSpec():
            inputs = []
    return Admitted(queue=_queue(session, settings, spec.device), inputs=inputs)


def _admit_train(session: Session, tenant: str, spec: TrainSpec) -> list[str]:
    split = _split(_dataset(session, tenant, spec.dataset), "train")
    if (words := spec.architecture.misfit(split.shape)) is not None:
        raise Unfit("architecture", words)
    if split.count < 2:
        raise Unfit(
            "dataset",
            "training holds some images out to validate, so it needs at least 2; this dataset has 1",
        )
    _check_range(split, spec.range)
    return [spec.dataset]


def _admit_capture(session: Session, settings: Settings, tenant: str, spec: CaptureSpec) -> list[str]:
    model = _model(session, tenant, spec.model)
    size = spec.count * parse_image_shape(model.input).pixels * (4 if spec.dtype == "float32" else 1)
    if size > settings.max_product_bytes:
        raise Unfit(
            "count",
            f"{spec.count} cards of {model.input} in {spec.dtype} are {size:,} bytes; "
            f"{settings.max_product_bytes:,} are allowed",
        )
    return [spec.model]


def _admit_evaluate(session: Session, tenant: str, spec: EvaluateSpec) -> list[str]:
    model = _model(session, tenant, spec.model)
    dataset = _dataset(session, tenant, spec.dataset)
    wanted = spec.split if spec.split != "auto" else ("test" if "test" in dataset.splits else "train")
    split = _split(dataset, wanted)
    _check_shape(parse_image_shape(model.input), split.shape)
    low, high = model.range
    _check_range(split, (low, high))
    return [spec.model, spec.dataset]


def _check_shape(model: ImageShape, images: ImageShape) -> None:
    if model != images:
        raise Unfit("dataset", f"the model takes images of {model}, and the images of this dataset are {images}")


def _check_range(split: Split, bounds: tuple[float, float]) -> None:
    """Whole numbers are scaled to the range; other numbers must already lie in it."""
    if split.dtype == "uint8":
        return
    if split.low < bounds[0] or split.high > bounds[1]:
        raise Unfit(
            "dataset",
            f"the images hold values from {split.low:g} to {split.high:g}, and the network's range is "
            f"{bounds[0]:g} to {bounds[1]:g}: scale the images, or give them as uint8",
        )


def _model(session: Session, tenant: str, id: str) -> Model:
    try:
        return scope.find(session, Model, tenant, id)
    except NotFound as missing:
        raise Unfit("model", missing.detail) from None


def _dataset(session: Session, tenant: str, id: str) -> Dataset:
    try:
        return scope.find(session, Dataset, tenant, id)
    except NotFound as missing:
        raise Unfit("dataset", missing.detail) from None


def _split(dataset: Dataset, name: str) -> Split:
    if name not in dataset.splits:
        raise Unfit("split", f"the dataset has no {name} split, only {', '.join(sorted(dataset.splits))}")
    return Split.model_validate(dataset.splits[name])


def _queue(session: Session, settings: Settings, device: str) -> str:
    if settings.embedded:
        if device not in ("auto", settings.queue):
            raise Unfit("device", f"the one worker of this service runs on {settings.queue}")
        return settings.queue
    if device != "auto":
        return device
    return "gpu" if session.connection().execute(LIVE_GPU_WORKER).first() else "cpu"
