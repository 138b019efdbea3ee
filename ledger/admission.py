"""Does this spec go with what exists? Asked before a job is queued, and again before it is retried."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.architecture import Architecture, ClassifierFamily, architecture_spec
from flashcards.contract.image import ImageShape, parse_image_shape
from flashcards.contract.resources import Split
from flashcards.contract.specs import (
    BEYOND_SIGMOID,
    AnalyzeSpec,
    CaptureSpec,
    CompareSpec,
    DistillSpec,
    EvaluateSpec,
    JobSpec,
    LearnSpec,
    NoopSpec,
    PredictSpec,
    TrainSpec,
    sigmoid_beyond,
)
from flashcards.contract.strategies import KEEPS_DATA
from ledger import scope
from ledger.clock import now
from ledger.errors import NotFound, Unfit
from ledger.settings import Settings
from ledger.tables import Dataset, Flashcards, Learner, Model, Version, Worker
from ledger.workers import ALIVE_SECONDS

IN_COMPARE = {"dataset": "datasets", "split": "datasets", "strategy": "strategies"}  # the field that says it there
LIVE_GPU_WORKER = select(Worker.id).where(Worker.queue == "gpu", Worker.seen_at > now() - ALIVE_SECONDS).limit(1)


@dataclass(frozen=True)
class Admitted:
    queue: str
    inputs: list[str]
    learner: str | None = None


def admit(session: Session, settings: Settings, tenant: str, spec: JobSpec, retain_data: bool = True) -> Admitted:
    """`retain_data` is what the key says of the data that comes with it."""
    learner = None
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
        case PredictSpec():
            inputs = _admit_predict(session, tenant, spec)
        case LearnSpec():
            _check_own(_learner(session, tenant, spec.learner))
            inputs, learner = check_task(session, tenant, spec, retain_data), spec.learner
        case CompareSpec():
            inputs = _admit_compare(session, tenant, spec, retain_data)
        case NoopSpec():
            inputs = []
    return Admitted(queue=_queue(session, settings, spec.device), inputs=inputs, learner=learner)


def _admit_train(session: Session, tenant: str, spec: TrainSpec) -> list[str]:
    split = _split(_dataset(session, tenant, spec.dataset), "train")
    _check_architecture(spec.architecture, split.shape)
    _check_count(split)
    _check_range(split, spec.range)
    if not isinstance(spec.architecture, ClassifierFamily):
        return [spec.dataset]
    _check_lesson_in_classes(split, spec.architecture)
    if spec.through is None:
        return [spec.dataset]
    _check_through(_model(session, tenant, spec.through, "through"), split, spec.range)
    return [spec.dataset, spec.through]


def _check_through(model: Model, split: Split, bounds: tuple[float, float]) -> None:
    check_reconstructs(_architecture(model), "through")
    if parse_image_shape(model.input) != split.shape:
        raise Unfit("through", f"it takes images of {model.input}, and those of the dataset are {split.shape}")
    if tuple(model.range) != bounds:
        low, high = model.range
        raise Unfit("range", f"the images come through a model whose range is {low:g},{high:g}: ask for the same")


def _admit_capture(session: Session, settings: Settings, tenant: str, spec: CaptureSpec) -> list[str]:
    model = _autoencoder(session, tenant, spec.model)
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
    model = _autoencoder(session, tenant, spec.model)
    _check_capsule(model, spec.source)
    if spec.dataset is None:
        return [spec.model]
    _check_images(model, _dataset(session, tenant, spec.dataset), "train")
    return [spec.model, spec.dataset]


def _admit_distill(session: Session, tenant: str, spec: DistillSpec) -> list[str]:
    cards = _cards(session, tenant, spec.flashcards)
    if cards.recipe["count"] < 2:
        raise Unfit("flashcards", "some cards are held out to validate, so it takes at least 2; this set has 1")
    check_reconstructs(spec.architecture, "architecture")
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
    model = _model(session, tenant, spec.model)
    _check_images(model, dataset, wanted)
    if isinstance(architecture := _architecture(model), ClassifierFamily):
        _check_labels(_split(dataset, wanted), architecture)
    return [spec.model, spec.dataset]


def _admit_predict(session: Session, tenant: str, spec: PredictSpec) -> list[str]:
    dataset = _dataset(session, tenant, spec.dataset)
    wanted = spec.split if spec.split != "auto" else ("test" if "test" in dataset.splits else "train")
    _check_images(_model(session, tenant, spec.model), dataset, wanted)
    count = _split(dataset, wanted).count
    if spec.rows is not None and max(spec.rows) >= count:
        raise Unfit(
            "rows", f"there is no row {max(spec.rows)}: split {wanted} has {count:,} images, the first is row 0"
        )
    return [spec.model, spec.dataset]


def check_task(session: Session, tenant: str, spec: LearnSpec, retain_data: bool = True) -> list[str]:
    """Asked again when its turn comes: a task before it may have said by then what the learner's images look like."""
    learner = _learner(session, tenant, spec.learner)
    split = _check_lesson(learner, _dataset(session, tenant, spec.dataset), spec.strategy.kind, retain_data)
    low, high = learner.range
    if spec.base_version is not None and session.get(Version, (learner.id, spec.base_version)) is None:
        raise Unfit("base_version", f"there is no version {spec.base_version} of {learner.id}")
    if spec.test_dataset is None:
        return [spec.learner, spec.dataset]
    _check_test(session, tenant, spec.test_dataset, split.shape, (low, high))
    return list(dict.fromkeys([spec.learner, spec.dataset, spec.test_dataset]))


def _check_lesson(learner: Learner, dataset: Dataset, strategy: str, retain_data: bool) -> Split:
    """Can this learner learn from these images, and keep what it knows that way?"""
    _check_strategy(learner, strategy, retain_data and dataset.retain)
    low, high = learner.range
    split = _split(dataset, "train")
    if learner.input is None:
        _check_architecture(architecture_spec.validate_python(learner.architecture), split.shape)
    else:
        _check_shape(parse_image_shape(learner.input), split.shape, "learner")
    _check_count(split)
    _check_range(split, (low, high))
    return split


def _admit_compare(session: Session, tenant: str, spec: CompareSpec, retain_data: bool) -> list[str]:
    """Every task of every strategy, as a learner would be asked that has learnt those before it."""
    check_learner(spec.architecture, spec.range)
    try:
        datasets = [_dataset(session, tenant, id) for id in spec.datasets]
        for strategy in spec.strategies:
            architecture = spec.architecture_for(strategy).model_dump(mode="json")
            pupil = Learner(architecture=architecture, range=list(spec.range))
            for dataset in datasets:
                split = _check_lesson(pupil, dataset, strategy.kind, retain_data)
                pupil.input = str(split.shape)
    except Unfit as unfit:
        raise Unfit(IN_COMPARE.get(unfit.field, unfit.field), unfit.detail) from None
    return list(dict.fromkeys(spec.datasets))


def check_learner(architecture: Architecture, bounds: tuple[float, float], field: str = "architecture") -> None:
    """Can a network of this architecture learn to give back images in these bounds, task after task?"""
    check_reconstructs(architecture, field)
    if sigmoid_beyond(architecture, bounds):
        raise Unfit("range", BEYOND_SIGMOID)


def check_reconstructs(architecture: Architecture, field: str) -> None:
    if architecture.task != "reconstruct":
        raise Unfit(
            field, f"{architecture.name} is a classifier, and this takes an autoencoder, which gives images back"
        )


def _check_labels(split: Split, architecture: ClassifierFamily) -> None:
    if split.classes is None:
        raise Unfit("dataset", "a classifier is held against labels, and these images have none: upload y with x")
    low, high = split.lowest_label or 0, split.highest_label if split.highest_label is not None else split.classes - 1
    if low < 0 or high >= architecture.classes:
        raise Unfit(
            "dataset",
            f"its labels go from {low} to {high}, and {architecture.name} tells apart the classes 0 to "
            f"{architecture.classes - 1}: number the labels from 0, or take as many classes as there are",
        )


def _check_lesson_in_classes(split: Split, architecture: ClassifierFamily) -> None:
    _check_labels(split, architecture)
    if split.classes == 1:
        raise Unfit("dataset", "all images have the same label: there is nothing to tell apart")
    if split.count == split.classes:
        raise Unfit("dataset", "every class has one image: none is left to hold out and validate with")


def _check_own(learner: Learner) -> None:
    if learner.compare_id is not None:
        raise Unfit("learner", f"it belongs to {learner.compare_id}, which compares strategies: make one of your own")


def _check_strategy(learner: Learner, kind: str, retain_data: bool) -> None:
    if kind == "cl_vae" and learner.architecture["family"] != "vae":
        raise Unfit("strategy", "cl_vae draws from the learner itself, which then needs an architecture vae_...")
    if kind in KEEPS_DATA and not retain_data:
        raise Unfit(
            "strategy",
            f"{kind} keeps images of earlier tasks, and this key keeps no data: flashcards, for one, keeps none",
        )


def _check_test(session: Session, tenant: str, id: str, shape: ImageShape, bounds: tuple[float, float]) -> None:
    try:
        dataset = scope.find(session, Dataset, tenant, id)
    except NotFound as missing:
        raise Unfit("test_dataset", missing.detail) from None
    split = _split(dataset, "test" if "test" in dataset.splits else "train")
    if split.shape != shape:
        raise Unfit("test_dataset", f"its images are {split.shape}, and those of the dataset are {shape}")
    _check_range(split, bounds, "test_dataset")


def _check_count(split: Split) -> None:
    if split.count < 2:
        raise Unfit("dataset", "training holds some images out to validate, so it needs at least 2; this dataset has 1")


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


def _check_shape(wanted: ImageShape, images: ImageShape, who: str = "model") -> None:
    if wanted != images:
        raise Unfit("dataset", f"the {who} takes images of {wanted}, and the images of this dataset are {images}")


def _check_range(split: Split, bounds: tuple[float, float], field: str = "dataset") -> None:
    """Whole numbers are scaled to the range; other numbers must already lie in it."""
    if split.dtype == "uint8":
        return
    if split.low < bounds[0] or split.high > bounds[1]:
        raise Unfit(
            field,
            f"the images hold values from {split.low:g} to {split.high:g}, and the network's range is "
            f"{bounds[0]:g} to {bounds[1]:g}: scale the images, or give them as uint8",
        )


def _architecture(model: Model) -> Architecture:
    return architecture_spec.validate_python(model.architecture)


def _autoencoder(session: Session, tenant: str, id: str) -> Model:
    model = _model(session, tenant, id)
    check_reconstructs(_architecture(model), "model")
    return model


def _model(session: Session, tenant: str, id: str, field: str = "model") -> Model:
    try:
        return scope.find(session, Model, tenant, id)
    except NotFound as missing:
        raise Unfit(field, missing.detail) from None


def _learner(session: Session, tenant: str, id: str) -> Learner:
    try:
        return scope.find(session, Learner, tenant, id)
    except NotFound as missing:
        raise Unfit("learner", missing.detail) from None


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
