"""Labelled images of tasks: what the new one is learnt from, and what every task is measured on.

Labels are those of the classifier: the label in the dataset, less the lowest one there, plus the classes of the tasks
before.
"""

from dataclasses import dataclass

import numpy as np

from engine.data import has_labels, hold_out_of_each, load_images, load_labels
from engine.errors import DatasetUnfit
from engine.jitter import jittered
from engine.task_data import TaskData, TestImages, refuse_other, test_images
from engine.work import DatasetInput, LearnerInput, Report, TaskInput, Work
from flashcards.contract.heads import HeadUnfit, Place, place_of
from flashcards.contract.image import ImageShape


@dataclass(frozen=True)
class ClassTest:
    """What a task is measured on."""

    images: TestImages
    labels_N: np.ndarray  # of its rows, as the classifier counts
    place: Place
    names: list[str] | None


@dataclass(frozen=True)
class ClassTaskData:
    task: TaskData
    labels_N: np.ndarray  # of every training image
    place: Place
    test: ClassTest


def load_class_task(work: Work, report: Report) -> ClassTaskData:
    spec, learner = work.spec, work.learner
    images = load_images(work.dataset.path, "train", learner.range)
    if images is None or not len(images):
        raise DatasetUnfit("the dataset has no training images: it needs an array named x_train or x")
    if work.model is not None:
        refuse_other(images, work.model.input)
    labels_N = load_labels(work.dataset.path, "train")
    place = _place(work, labels_N)
    if (words := learner.architecture.model_copy(update={"heads": place.heads}).misfit(images.shape)) is not None:
        raise DatasetUnfit(words)
    if (words := images.stray()) is not None:
        report.note(words)
    _refuse_rare(labels_N)
    train_rows, validation_rows = hold_out_of_each(labels_N, spec.validation_share, spec.seed)
    test = _test(work, images.shape, place)
    source = work.test_dataset or work.dataset
    if test.images.split == "held_out" and source.path == work.dataset.path:
        # What the task is measured on, now and after later tasks, is never learnt from, whatever the seed is.
        train_rows = train_rows[~np.isin(train_rows, test.images.rows)]
        if len(np.unique(labels_N[train_rows])) < len(np.unique(labels_N)):
            raise DatasetUnfit("too few images of a class to hold some out, to measure on others and to learn from")
        report.note("the dataset has no test split: the task is measured on a tenth of its images, not learnt from")
    task = TaskData(jittered(images, spec.jitter), train_rows, validation_rows, test.images)
    return ClassTaskData(task, labels_N - place.lowest + place.first, place, test)


def earlier_tests(learner: LearnerInput, shape: ImageShape) -> list[ClassTest | None]:
    """Of each task so far; None where its images are gone."""
    found, first = [], 0
    for task in learner.tasks:
        alone = learner.scenario == "task_incremental"
        place = Place((), first if alone else 0, task.classes, task.lowest)
        found.append(None if task.test is None else _labelled(task.test, learner.range, shape, place))
        first += task.classes
    return found


def spans(tasks: list[TaskInput]) -> list[tuple[int, int]]:
    """First score and number of classes of each earlier task of task-incremental learning."""
    firsts = np.cumsum([0, *(task.classes for task in tasks)])
    return [(int(first), task.classes) for first, task in zip(firsts, tasks, strict=False)]


def _place(work: Work, labels_N: np.ndarray) -> Place:
    learnt = () if work.model is None else work.model.architecture.heads
    learner = work.learner
    try:
        return place_of(learner.scenario, learner.architecture, learnt, int(labels_N.min()), int(labels_N.max()))
    except HeadUnfit as unfit:
        raise DatasetUnfit(f"{unfit}; the learner stays as it was") from unfit


def _test(work: Work, shape: ImageShape, place: Place) -> ClassTest:
    """Looked at before the first step: an hour of training is not to end in labels that cannot be."""
    return _labelled(work.test_dataset or work.dataset, work.learner.range, shape, place)


def _labelled(dataset: DatasetInput, range: tuple[float, float], shape: ImageShape, place: Place) -> ClassTest:
    images = test_images(dataset, range, shape)
    split = "test" if images.split == "test" else "train"
    if not has_labels(dataset.path, split):
        raise DatasetUnfit(f"the images of {split} that the task is to be measured on have no labels")
    labels_N = load_labels(dataset.path, split)[images.rows]
    low, high = int(labels_N.min()), int(labels_N.max())
    if low < place.lowest or high >= place.lowest + place.classes:
        raise DatasetUnfit(
            f"the labels of {split} go from {low} to {high}, and the task has the classes {place.lowest} to "
            f"{place.lowest + place.classes - 1}"
        )
    return ClassTest(images, labels_N - place.lowest + place.first, place, dataset.labels)


def _refuse_rare(labels_N: np.ndarray) -> None:
    labels, counts = np.unique(labels_N, return_counts=True)
    if len(labels) < 2:
        raise DatasetUnfit("all images have the same label: there is nothing to tell apart")
    alone = labels[counts == 1]
    if len(alone):
        some = ", ".join(map(str, alone[:10])) + (", ..." if len(alone) > 10 else "")
        which = f"class {some} has" if len(alone) == 1 else f"classes {some} have"
        raise DatasetUnfit(
            f"{which} one image: nothing could be held out of it, and nothing kept of it; give it more, or leave it out"
        )
