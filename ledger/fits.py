"""Does one thing go with another? Each check is silent, or says in words why not."""

from flashcards.contract.architecture import Architecture, ClassifierFamily, Onnx, architecture_spec
from flashcards.contract.families.onnx import UNTRAINABLE
from flashcards.contract.image import ImageShape, parse_image_shape
from flashcards.contract.resources import Split
from flashcards.contract.specs import BEYOND_SIGMOID, CLASSIFY, sigmoid_beyond
from flashcards.contract.strategies import CLASSES_ONLY, IMAGES_ONLY, KEEPS_DATA
from ledger.errors import Unfit
from ledger.tables import Dataset, Learner, Model


def check_through(model: Model, split: Split, bounds: tuple[float, float]) -> None:
    check_reconstructs(architecture_of(model), "through")
    if parse_image_shape(model.input) != split.shape:
        raise Unfit("through", f"it takes images of {model.input}, and those of the dataset are {split.shape}")
    if tuple(model.range) != bounds:
        low, high = model.range
        raise Unfit("range", f"the images come through a model whose range is {low:g},{high:g}: ask for the same")


def check_learner(architecture: Architecture, bounds: tuple[float, float], field: str = "architecture") -> None:
    """Can a network of this architecture learn to give back images in these bounds, task after task?"""
    check_learns(architecture, field)
    check_reconstructs(architecture, field)
    if sigmoid_beyond(architecture, bounds):
        raise Unfit("range", BEYOND_SIGMOID)


def check_learns(architecture: Architecture, field: str) -> None:
    if isinstance(architecture, Onnx):
        raise Unfit(field, UNTRAINABLE)


def check_reconstructs(architecture: Architecture, field: str) -> None:
    if architecture.task != "reconstruct":
        raise Unfit(
            field, f"{architecture.name} is a classifier, and this takes an autoencoder, which gives images back"
        )


def check_labels(split: Split, architecture: ClassifierFamily) -> None:
    if split.classes is None:
        raise Unfit("dataset", "a classifier is held against labels, and these images have none: upload y with x")
    low, high = split.lowest_label or 0, split.highest_label if split.highest_label is not None else split.classes - 1
    if low < 0 or high >= architecture.classes:
        raise Unfit(
            "dataset",
            f"its labels go from {low} to {high}, and {architecture.name} tells apart the classes 0 to "
            f"{architecture.classes - 1}: number the labels from 0, or take as many classes as there are",
        )


def check_lesson_in_classes(split: Split, architecture: ClassifierFamily) -> None:
    check_labels(split, architecture)
    if split.classes == 1:
        raise Unfit("dataset", "all images have the same label: there is nothing to tell apart")
    if split.count == split.classes:
        raise Unfit("dataset", "every class has one image: none is left to hold out and validate with")


def check_own(learner: Learner) -> None:
    if learner.compare_id is not None:
        raise Unfit("learner", f"it belongs to {learner.compare_id}, which compares strategies: make one of your own")


def check_strategy(learner: Learner, kind: str, retain_data: bool) -> None:
    of_classes = learner.scenario in CLASSIFY
    if kind in CLASSES_ONLY and not of_classes:
        raise Unfit("strategy", f"{kind} is for learners of classes, of scenario {' or '.join(CLASSIFY)}")
    if kind in IMAGES_ONLY and of_classes:
        raise Unfit("strategy", f"{kind} draws from a learner that gives images back, and this one says what they show")
    if kind == "cl_vae" and learner.architecture["family"] != "vae":
        raise Unfit("strategy", "cl_vae draws from the learner itself, which then needs an architecture vae_...")
    if kind in KEEPS_DATA and not retain_data:
        raise Unfit(
            "strategy",
            f"{kind} keeps images of earlier tasks, and this key keeps no data: flashcards, for one, keeps none",
        )


def check_count(split: Split) -> None:
    if split.count < 2:
        raise Unfit("dataset", "training holds some images out to validate, so it needs at least 2; this dataset has 1")


def check_architecture(architecture: Architecture, image: ImageShape, field: str = "architecture") -> None:
    check_learns(architecture, field)
    if (words := architecture.misfit(image)) is not None:
        raise Unfit(field, words)


def check_capsule(model: Model, source: str) -> None:
    if source == "capsule" and model.capsule_digest is None:
        raise Unfit(
            "source", "this model has no capsule: PUT one to /v1/models/{id}/capsule, or take source latent or auto"
        )


def check_images(model: Model, dataset: Dataset, name: str) -> None:
    split = split_of(dataset, name)
    check_shape(parse_image_shape(model.input), split.shape)
    low, high = model.range
    check_range(split, (low, high))


def check_shape(wanted: ImageShape, images: ImageShape, who: str = "model") -> None:
    if wanted != images:
        raise Unfit("dataset", f"the {who} takes images of {wanted}, and the images of this dataset are {images}")


def check_range(split: Split, bounds: tuple[float, float], field: str = "dataset") -> None:
    """Whole numbers are scaled to the range; other numbers must already lie in it."""
    if split.dtype == "uint8":
        return
    if split.low < bounds[0] or split.high > bounds[1]:
        raise Unfit(
            field,
            f"the images hold values from {split.low:g} to {split.high:g}, and the network's range is "
            f"{bounds[0]:g} to {bounds[1]:g}: scale the images, or give them as uint8",
        )


def architecture_of(model: Model) -> Architecture:
    return architecture_spec.validate_python(model.architecture)


def form_of(model: Model) -> str:
    """How its file is written, as the end of a name."""
    return "onnx" if isinstance(architecture_of(model), Onnx) else "safetensors"


def split_of(dataset: Dataset, name: str) -> Split:
    if name not in dataset.splits:
        raise Unfit("split", f"the dataset has no {name} split, only {', '.join(sorted(dataset.splits))}")
    return Split.model_validate(dataset.splits[name])
