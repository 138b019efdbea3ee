"""Images of tasks: what the new one is learnt from, and what every task is measured on."""

from dataclasses import dataclass

import numpy as np

from engine.data import Images, hold_out, load_images
from engine.errors import DatasetUnfit
from engine.evaluate import HELD_OUT_SEED, HELD_OUT_SHARE
from engine.work import DatasetInput, Report, Work
from flashcards.contract.image import ImageShape


@dataclass(frozen=True)
class TestImages:
    images: Images
    rows: np.ndarray
    split: str


@dataclass(frozen=True)
class TaskData:
    images: Images
    train_rows: np.ndarray
    validation_rows: np.ndarray
    test: TestImages

    @property
    def own_rows(self) -> np.ndarray:
        """What is not measured on: to learn from, to hold out, to keep."""
        rows = np.sort(np.concatenate([self.train_rows, self.validation_rows]))
        return rows if self.test.split == "test" else rows[~np.isin(rows, self.test.rows)]


def load_task(work: Work, report: Report) -> TaskData:
    spec, learner = work.spec, work.learner
    images = load_images(work.dataset.path, "train", learner.range)
    if images is None:
        raise DatasetUnfit("the dataset has no training images: it needs an array named x_train or x")
    if work.model is not None:
        refuse_other(images, work.model.input)
    if (words := learner.architecture.misfit(images.shape)) is not None:
        raise DatasetUnfit(words)
    if (words := images.stray()) is not None:
        report.note(words)
    train_rows, validation_rows = hold_out(len(images), spec.validation_share, spec.seed)
    source = work.test_dataset or work.dataset
    test = test_images(source, learner.range, images.shape)
    if test.split == "held_out" and source.path == work.dataset.path:
        # What the task is measured on, now and after later tasks, is never learnt from, whatever the seed is.
        train_rows = train_rows[~np.isin(train_rows, test.rows)]
        if not len(train_rows):
            raise DatasetUnfit("too few images to hold some out, to measure on others and to learn from the rest")
        report.note("the dataset has no test split: the task is measured on a tenth of its images, not learnt from")
    return TaskData(images, train_rows, validation_rows, test)


def test_images(dataset: DatasetInput, range: tuple[float, float], shape: ImageShape) -> TestImages:
    """The test split, or the tenth of train that `evaluate` takes for it."""
    images = load_images(dataset.path, "test", range)
    if images is not None and len(images):
        refuse_other(images, shape)
        return TestImages(images, np.arange(len(images)), "test")
    images = load_images(dataset.path, "train", range)
    if images is None:
        raise DatasetUnfit("the dataset that the task is to be measured on has no images")
    refuse_other(images, shape)
    return TestImages(images, hold_out(len(images), HELD_OUT_SHARE, HELD_OUT_SEED)[1], "held_out")


def refuse_other(images: Images, shape: ImageShape) -> None:
    if images.shape != shape:
        raise DatasetUnfit(f"the learner takes images of {shape}; these are {images.shape}")
