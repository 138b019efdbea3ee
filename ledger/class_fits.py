"""Can a learner of classes learn this task? Its labels, its head, and whether its classes are new ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from flashcards.contract.architecture import Architecture, Classifier, architecture_spec
from flashcards.contract.base import Record
from flashcards.contract.heads import HeadUnfit, Place, place_of
from flashcards.contract.image import ImageShape
from flashcards.contract.resources import Split
from flashcards.contract.specs import CLASSIFY
from ledger import fits
from ledger.errors import Unfit
from ledger.tables import Dataset, Learner, Version


class TaskClasses(Record):
    """What a version remembers of the classes that its task has."""

    count: int
    lowest: int = 0
    names: list[str] | None = None
    dataset: str | None = None
    "Digest of the dataset."

    @property
    def highest(self) -> int:
        return self.lowest + self.count - 1


@dataclass(frozen=True)
class Known:
    """What a learner tells apart already."""

    heads: tuple[int, ...] = ()
    tasks: list[TaskClasses] = field(default_factory=list)


def classifies(learner: Learner) -> bool:
    return learner.scenario in CLASSIFY


def known_by(versions: Sequence[Version]) -> Known:
    if not versions:
        return Known()
    newest = classifier_of(architecture_spec.validate_python(versions[-1].architecture))
    return Known(newest.heads, [TaskClasses.model_validate(version.classes) for version in versions])


def classifier_of(architecture: Architecture, field: str = "architecture") -> Classifier:
    if not isinstance(architecture, Classifier):
        raise Unfit(field, f"{architecture.name} is an autoencoder, and a learner of classes is a classifier")
    return architecture


def check_pair(classifier: Architecture, autoencoder: Architecture, bounds: tuple[float, float]) -> None:
    """The two networks of a learner of classes."""
    fits.check_learns(classifier_of(classifier), "architecture")
    fits.check_learner(autoencoder, bounds, "autoencoder_architecture")


def check_class_lesson(learner: Learner, known: Known, dataset: Dataset, shape: ImageShape) -> Known:
    """And what the learner will know once it has learnt it."""
    classifier = classifier_of(architecture_spec.validate_python(learner.architecture))
    split = fits.split_of(dataset, "train")
    low, high = _labels(split)
    if split.classes == 1:
        raise Unfit("dataset", "all images have the same label: there is nothing to tell apart")
    if split.count == split.classes:
        raise Unfit("dataset", "every class has one image: none is left to hold out and validate with")
    try:
        place = place_of(learner.scenario, classifier, known.heads, low, high)
    except HeadUnfit as unfit:
        raise Unfit("dataset", str(unfit)) from None
    fits.check_architecture(classifier.model_copy(update={"heads": place.heads}), shape)
    fits.check_architecture(architecture_spec.validate_python(learner.autoencoder), shape, "autoencoder_architecture")
    if (tests := dataset.splits.get("test")) is not None:
        check_tests(Split.model_validate(tests), place, "dataset")
    mine = TaskClasses(count=place.classes, lowest=place.lowest, names=split.labels, dataset=dataset.digest)
    if learner.scenario == "task_incremental":
        for number, other in enumerate(known.tasks, start=1):
            _check_apart(mine, other, number)
    return Known(place.heads, [*known.tasks, mine])


def place_in(learner: Learner, known: Known) -> Place:
    """Of the newest task of what is known."""
    newest = known.tasks[-1]
    return Place(known.heads, sum(known.heads) - newest.count, newest.count, newest.lowest)


def check_tests(split: Split, place: Place, field: str) -> None:
    if split.classes is None:
        raise Unfit(field, "the images that it is measured on have no labels: upload y with x")
    low, high = _labels(split)
    last = place.lowest + place.classes - 1
    if low < place.lowest or high > last:
        raise Unfit(field, f"the labels of test go from {low} to {high}, and the task's are {place.lowest} to {last}")


def _labels(split: Split) -> tuple[int, int]:
    if split.classes is None:
        raise Unfit("dataset", "a learner of classes needs labels, and these images have none: upload y with x")
    high = split.highest_label if split.highest_label is not None else split.classes - 1
    return split.lowest_label or 0, high


def _check_apart(mine: TaskClasses, other: TaskClasses, number: int) -> None:
    """A class belongs to one head: asked without a task id, two heads would both be right."""
    if mine.dataset == other.dataset:
        raise Unfit("dataset", f"task {number} was learnt from the same images: its classes have a head already")
    shared = sorted(set(_named(mine)) & set(_named(other)))
    if shared:
        words = ", ".join(shared[:5]) + (", ..." if len(shared) > 5 else "")
        raise Unfit("dataset", f"its classes overlap those of task {number}: both have {words}")
    # Labels that do not begin at 0 are numbered through all tasks, so equal numbers are equal classes.
    if mine.lowest > 0 and mine.lowest <= other.highest and other.lowest <= mine.highest:
        raise Unfit(
            "dataset",
            f"its labels {mine.lowest} to {mine.highest} overlap those of task {number}, {other.lowest} to "
            f"{other.highest}: number the classes of each task from 0, or all of them through",
        )


def _named(classes: TaskClasses) -> list[str]:
    return [] if classes.names is None else classes.names[classes.lowest : classes.highest + 1]
