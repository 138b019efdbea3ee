"""Does this spec go with what exists? Asked before a job is queued, and again before it is retried."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape, parse_image_shape
from flashcards.contract.resources import Split
from flashcards.contract.specs import (
    AnalyzeSpec,
    CaptureSpec,
    DistillSpec,
    EvaluateSpec,
    JobSpec,
    NoopSpec,
    TrainSpec,
)
from ledger import scope
from ledger.clock import now
from ledger.errors import NotFound, Unfit
from ledger.settings import Settings
from ledger.tables import Dataset, Flashcards, Model, Worker
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
        case AnalyzeSpec():
            inputs = _admit_analyze(session, tenant, spec)
        case DistillSpec():
            inputs = _admit_distill(session, tenant, spec)
        case EvaluateSpec():
            inputs = _admit_evaluate(session, tenant, spec)
        case NoopSpec():
            inputs = []
    return Admitted(queue=_queue(session, settings, spec.device), inputs=inputs)


def _admit_train(session: Session, tenant: str, spec: TrainSpec) -> list[str]:
    split = _split(_dataset(session, tenant, spec.dataset), "train")
    _check_architecture(spec.architecture, split.shape)
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
    _check_capsule(model, spec.source)
    return [spec.model]


def _admit_analyze(session: Session, tenant: str, spec: AnalyzeSpec) -> list[str]:
    model = _model(session, tenant, spec.model)
    _check_capsule(model, spec.source)
    if spec.dataset is None:
        return [spec.model]
    _check_images(model, _dataset(session, tenant, spec.dataset), "train")
    return [spec.model, spec.dataset]


def _admit_distill(session: Session, tenant: str, spec: DistillSpec) -> list[str]:
    cards = _cards(session, tenant, spec.flashcards)
    if cards.recipe["count"] < 2:
        raise Unfit("flashcards", "some cards are held out to validate, so it takes at least 2; this set has 1")
    _check_architecture(spec.architecture, parse_image_shape(cards.recipe["input"]))
    inputs = [spec.flashcards, cards.model_id]
    if spec.dataset is None:
        return inputs
    dataset = _dataset(session, tenant, spec.dataset)
    _check_images(session.get_one(Model, cards.model_id), dataset, "test" if "test" in dataset.splits else "train")
    return [*inputs, spec.dataset]


def _admit_evaluate(session: Session, tenant: str, spec: EvaluateSpec) -> list[str]:
    dataset = _dataset(session, tenant, spec.dataset)
    wanted = spec.split if spec.split != "auto" else ("test" if "test" in dataset.splits else "train")
    if spec.flashcards is not None:
        cards = _cards(session, tenant, spec.flashcards)
        _check_images(session.get_one(Model, cards.model_id), dataset, wanted)
        return [spec.flashcards, cards.model_id, spec.dataset]
    assert spec.model is not None
    _check_images(_model(session, tenant, spec.model), dataset, wanted)
    return [spec.model, spec.dataset]


def _check_architecture(architecture: Architecture, image: ImageShape) -> None:
    if (words := architecture.misfit(image)) is not None:
        raise Unfit("architecture", words)


def _check_capsule(model: Model, source: str) -> None:
    if source == "capsule" and model.capsule_digest is None:
        raise Unfit(
            "source", "this model has no capsule: PUT one to /v1/models/{id}/capsule, or take source latent or auto"
        )


def _check_images(model: Model, dataset: Dataset, name: str) -> None:
    split = _split(dataset, name)
    _check_shape(parse_image_shape(model.input), split.shape)
    low, high = model.range
    _check_range(split, (low, high))


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


def _cards(session: Session, tenant: str, id: str) -> Flashcards:
    """Cards that are there: of some sets only the recipe is kept."""
    try:
        cards = scope.find(session, Flashcards, tenant, id)
    except NotFound as missing:
        raise Unfit("flashcards", missing.detail) from None
    if not cards.materialised:
        raise Unfit("flashcards", f"only the recipe of {id} is kept: capture it again with materialise true")
    return cards


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
