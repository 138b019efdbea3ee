"""Does this spec go with what exists? Asked before a job is queued, and again before it is retried."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.architecture import ClassifierFamily, architecture_spec
from flashcards.contract.heads import Place
from flashcards.contract.image import ImageShape, parse_image_shape
from flashcards.contract.resources import Split
from flashcards.contract.specs import (
    AnalyzeSpec,
    CaptureSpec,
    CompareSpec,
    DistillSpec,
    EvaluateSpec,
    ExportSpec,
    JobSpec,
    LearnSpec,
    NoopSpec,
    PredictSpec,
    TrainSpec,
)
from ledger import announcements, class_fits, fits, mirrors, scope
from ledger.clock import now
from ledger.errors import NotFound, Unfit
from ledger.settings import Settings
from ledger.tables import Dataset, Flashcards, Learner, Model, Version, Worker
from ledger.versions import chain
from ledger.workers import ALIVE_SECONDS

IN_COMPARE = {"dataset": "datasets", "split": "datasets", "strategy": "strategies"}  # the field that says it there
LIVE_GPU_WORKER = select(Worker.id).where(Worker.queue == "gpu", Worker.seen_at > now() - ALIVE_SECONDS).limit(1)


@dataclass(frozen=True)
class Admitted:
    queue: str
    inputs: list[str]
    learner: str | None = None
    mirrored: bool = False


def admit(session: Session, settings: Settings, tenant: str, spec: JobSpec, retain_data: bool = True) -> Admitted:
    """`retain_data` is what the key says of the data that comes with it."""
    learner, mirrored = None, mirrors.wanted(settings, tenant, spec)
    if spec.announce is not None:
        announcements.check_queue(settings, spec.announce)
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
        case ExportSpec():
            inputs = [_model(session, tenant, spec.model).id]
        case LearnSpec():
            fits.check_own(_learner(session, tenant, spec.learner))
            inputs, learner = check_task(session, tenant, spec, retain_data), spec.learner
        case CompareSpec():
            inputs = _admit_compare(session, tenant, spec, retain_data)
        case NoopSpec():
            inputs = []
    queue = _queue(session, settings, spec.device)
    return Admitted(queue=queue, inputs=inputs, learner=learner, mirrored=mirrored)


def _admit_train(session: Session, tenant: str, spec: TrainSpec) -> list[str]:
    dataset = _dataset(session, tenant, spec.dataset)
    split = fits.split_of(dataset, "train")
    fits.check_architecture(spec.architecture, split.shape)
    fits.check_count(split)
    fits.check_range(split, spec.range)
    if not isinstance(spec.architecture, ClassifierFamily):
        return [spec.dataset]
    fits.check_lesson_in_classes(split, spec.architecture)
    if (tests := dataset.splits.get("test")) and tests.get("classes"):
        fits.check_labels(Split.model_validate(tests), spec.architecture)
    if spec.through is None:
        return [spec.dataset]
    fits.check_through(_model(session, tenant, spec.through, "through"), split, spec.range)
    return [spec.dataset, spec.through]


def _admit_capture(session: Session, settings: Settings, tenant: str, spec: CaptureSpec) -> list[str]:
    model = _autoencoder(session, tenant, spec.model)
    size = spec.count * parse_image_shape(model.input).pixels * (4 if spec.dtype == "float32" else 1)
    if size > settings.max_product_bytes:
        raise Unfit(
            "count",
            f"{spec.count} cards of {model.input} in {spec.dtype} are {size:,} bytes; "
            f"{settings.max_product_bytes:,} are allowed",
        )
    fits.check_capsule(model, spec.source)
    return [spec.model]


def _admit_analyze(session: Session, tenant: str, spec: AnalyzeSpec) -> list[str]:
    model = _autoencoder(session, tenant, spec.model)
    fits.check_capsule(model, spec.source)
    if spec.retrain:
        fits.check_learns(fits.architecture_of(model), "retrain")
    if spec.dataset is None:
        return [spec.model]
    fits.check_images(model, _dataset(session, tenant, spec.dataset), "train")
    return [spec.model, spec.dataset]


def _admit_distill(session: Session, tenant: str, spec: DistillSpec) -> list[str]:
    cards = _cards(session, tenant, spec.flashcards)
    if cards.recipe["count"] < 2:
        raise Unfit("flashcards", "some cards are held out to validate, so it takes at least 2; this set has 1")
    fits.check_reconstructs(spec.architecture, "architecture")
    fits.check_architecture(spec.architecture, parse_image_shape(cards.recipe["input"]))
    inputs = [spec.flashcards, cards.model_id]
    if spec.dataset is None:
        return inputs
    dataset = _dataset(session, tenant, spec.dataset)
    fits.check_images(session.get_one(Model, cards.model_id), dataset, "test" if "test" in dataset.splits else "train")
    return [*inputs, spec.dataset]


def _admit_evaluate(session: Session, tenant: str, spec: EvaluateSpec) -> list[str]:
    dataset = _dataset(session, tenant, spec.dataset)
    wanted = spec.split if spec.split != "auto" else ("test" if "test" in dataset.splits else "train")
    if spec.flashcards is not None:
        cards = _cards(session, tenant, spec.flashcards)
        fits.check_images(session.get_one(Model, cards.model_id), dataset, wanted)
        return [spec.flashcards, cards.model_id, spec.dataset]
    assert spec.model is not None
    model = _model(session, tenant, spec.model)
    fits.check_images(model, dataset, wanted)
    if isinstance(architecture := fits.architecture_of(model), ClassifierFamily):
        fits.check_labels(fits.split_of(dataset, wanted), architecture)
    return [spec.model, spec.dataset]


def _admit_predict(session: Session, tenant: str, spec: PredictSpec) -> list[str]:
    dataset = _dataset(session, tenant, spec.dataset)
    wanted = spec.split if spec.split != "auto" else ("test" if "test" in dataset.splits else "train")
    fits.check_images(_model(session, tenant, spec.model), dataset, wanted)
    count = fits.split_of(dataset, wanted).count
    if spec.rows is not None and max(spec.rows) >= count:
        raise Unfit(
            "rows", f"there is no row {max(spec.rows)}: split {wanted} has {count:,} images, the first is row 0"
        )
    return [spec.model, spec.dataset]


def check_task(session: Session, tenant: str, spec: LearnSpec, retain_data: bool = True) -> list[str]:
    """Asked again when its turn comes: a task before it may have said by then what the learner's images look like."""
    learner = _learner(session, tenant, spec.learner)
    if spec.jitter is not None and learner.scenario != "new_instance":
        raise Unfit(
            "jitter", f"sessions of scenario new_instance differ in light, and this learner's is {learner.scenario}"
        )
    dataset = _dataset(session, tenant, spec.dataset)
    split = _check_lesson(learner, dataset, spec.strategy.kind, retain_data)
    low, high = learner.range
    place = None
    if class_fits.classifies(learner):
        known = class_fits.known_by(chain(session, learner))
        place = class_fits.place_in(learner, class_fits.check_class_lesson(learner, known, dataset, split.shape))
    if spec.base_version is not None and session.get(Version, (learner.id, spec.base_version)) is None:
        raise Unfit("base_version", f"there is no version {spec.base_version} of {learner.id}")
    if spec.test_dataset is None:
        return [spec.learner, spec.dataset]
    _check_test(session, tenant, spec.test_dataset, split.shape, (low, high), place)
    return list(dict.fromkeys([spec.learner, spec.dataset, spec.test_dataset]))


def _check_lesson(learner: Learner, dataset: Dataset, strategy: str, retain_data: bool) -> Split:
    """Can this learner learn from these images, and keep what it knows that way?"""
    fits.check_strategy(learner, strategy, retain_data and dataset.retain)
    low, high = learner.range
    split = fits.split_of(dataset, "train")
    if learner.input is not None:
        fits.check_shape(parse_image_shape(learner.input), split.shape, "learner")
    elif not class_fits.classifies(learner):
        fits.check_architecture(architecture_spec.validate_python(learner.architecture), split.shape)
    fits.check_count(split)
    fits.check_range(split, (low, high))
    return split


def _admit_compare(session: Session, tenant: str, spec: CompareSpec, retain_data: bool) -> list[str]:
    """Every task of every strategy, as a learner would be asked that has learnt those before it."""
    autoencoder = spec.autoencoder_for_classes
    if autoencoder is None:
        fits.check_learner(spec.architecture, spec.range)
    else:
        class_fits.check_pair(spec.architecture, autoencoder, spec.range)
    try:
        datasets = [_dataset(session, tenant, id) for id in spec.datasets]
        for strategy in spec.strategies:
            architecture = spec.architecture_for(strategy).model_dump(mode="json")
            pupil = Learner(scenario=spec.scenario, architecture=architecture, range=list(spec.range))
            pupil.autoencoder = None if autoencoder is None else autoencoder.model_dump(mode="json")
            known = class_fits.Known()
            for dataset in datasets:
                split = _check_lesson(pupil, dataset, strategy.kind, retain_data)
                pupil.input = str(split.shape)
                if autoencoder is not None:
                    known = class_fits.check_class_lesson(pupil, known, dataset, split.shape)
    except Unfit as unfit:
        raise Unfit(IN_COMPARE.get(unfit.field, unfit.field), unfit.detail) from None
    return list(dict.fromkeys(spec.datasets))


def _check_test(
    session: Session, tenant: str, id: str, shape: ImageShape, bounds: tuple[float, float], place: Place | None
) -> None:
    try:
        dataset = scope.find(session, Dataset, tenant, id)
    except NotFound as missing:
        raise Unfit("test_dataset", missing.detail) from None
    split = fits.split_of(dataset, "test" if "test" in dataset.splits else "train")
    if split.shape != shape:
        raise Unfit("test_dataset", f"its images are {split.shape}, and those of the dataset are {shape}")
    fits.check_range(split, bounds, "test_dataset")
    if place is not None:
        class_fits.check_tests(split, place, "test_dataset")


def _autoencoder(session: Session, tenant: str, id: str) -> Model:
    model = _model(session, tenant, id)
    fits.check_reconstructs(fits.architecture_of(model), "model")
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


def _queue(session: Session, settings: Settings, device: str) -> str:
    if settings.embedded:
        if device not in ("auto", settings.queue):
            raise Unfit("device", f"the one worker of this service runs on {settings.queue}")
        return settings.queue
    if device != "auto":
        return device
    return "gpu" if session.connection().execute(LIVE_GPU_WORKER).first() else "cpu"
