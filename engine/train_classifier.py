"""The train job of a classifier: it learns the labels of a dataset, from the images or from what an autoencoder makes
of them (the paper's downstream classifier), and is tested on the test images as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.aims import Classify
from engine.class_measures import accuracy, constant_accuracy, scores
from engine.class_plots import per_class, save_confusion
from engine.data import Images, has_labels, hold_out_of_each, load_images, load_labels
from engine.errors import DatasetUnfit, Stopped
from engine.lesson import Lesson
from engine.models import chunk_size
from engine.pictures import quantize
from engine.probe import forward_unverified
from engine.teach import Taught, teach
from engine.train import load
from engine.weights import load_network
from engine.work import Outcome, Product, Report, Work
from flashcards.contract.class_results import TrainClassifierResult
from flashcards.contract.specs import TrainSpec


def train_classifier(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec, device = work.spec, torch.device(work.device)
    architecture, names = spec.architecture, work.dataset.labels
    images = load(work, report)
    labels_N = load_labels(work.dataset.path, "train", architecture.classes)
    train_rows, validation_rows = hold_out_of_each(labels_N, spec.validation_share, spec.seed)
    _note_rare(labels_N, report)
    tests = _tests(work)
    if work.model is not None:
        images = passed_through(work, images, device, report, stop)
    held = labels_N[validation_rows]
    lesson = Lesson(
        architecture=architecture,
        images=images,
        train_rows=train_rows,
        validation_rows=validation_rows,
        aim=Classify(labels_N),
    )

    def answers(taught: Taught) -> np.ndarray:
        return scores(taught.network, images, validation_rows, taught.chunk, device)

    def show(taught: Taught) -> list[Product]:
        return save_confusion(work.out, answers(taught), held, names, f"{architecture.name}, images held out", report)

    taught = teach(work, lesson, report, stop, show)
    y_NK = answers(taught)
    result = TrainClassifierResult(
        parameters=architecture.parameters(images.shape),
        images=len(train_rows),
        classes=architecture.classes,
        validation_accuracy=accuracy(y_NK, held),
        constant_accuracy=constant_accuracy(labels_N[train_rows], held),
        per_class=per_class(y_NK, held, names),
        test_accuracy=None if tests is None else tests.accuracy(taught, device, taught.stop_if(stop)),
        **taught.told(work),
    )
    return Outcome(result, taught.products)


def _note_rare(labels_N: np.ndarray, report: Report) -> None:
    labels, counts = np.unique(labels_N, return_counts=True)
    alone = labels[counts == 1]
    if len(alone):
        some = ", ".join(map(str, alone[:10])) + (", ..." if len(alone) > 10 else "")
        which = f"class {some} has" if len(alone) == 1 else f"classes {some} have"
        report.note(f"{which} one image: it is learnt from, so nothing says how well it is told apart from others")


@torch.inference_mode()
def passed_through(
    work: Work, images: Images, device: torch.device, report: Report, stop: Callable[[], bool]
) -> Images:
    """What the autoencoder makes of every image, kept as the images are: bytes stay bytes."""
    model, spec = work.model, work.spec
    if (model.input, model.range) != (images.shape, spec.range):
        low, high = model.range
        raise DatasetUnfit(f"the autoencoder takes images of {model.input} from {low:g} to {high:g}")
    network = load_network(model, device)
    if forward_unverified(network, model, device):
        report.note("no probe says that the autoencoder answers here as it does at home: its reconstructions are ours")
    chunk, parts = chunk_size(model.architecture, model.input), []
    for first in range(0, len(images), chunk):
        if stop():
            raise Stopped(f"stopped after {first} of {len(images)} images had gone through the autoencoder")
        y_BCHW = network(images.batch(np.arange(first, min(first + chunk, len(images))), device))
        y_BHWC = y_BCHW.permute(0, 2, 3, 1).cpu().numpy()
        parts.append(quantize(y_BHWC, model.range) if images.x_NHWC.dtype == np.uint8 else y_BHWC)
    return Images(np.concatenate(parts), images.range)


@dataclass(frozen=True)
class Tests:
    images: Images
    labels_N: np.ndarray

    def accuracy(self, taught: Taught, device: torch.device, between: Callable[[], None]) -> float:
        every = np.arange(len(self.images))
        return accuracy(scores(taught.network, self.images, every, taught.chunk, device, between), self.labels_N)


def _tests(work: Work) -> Tests | None:
    """Looked at before the first step: an hour of training is not to end in labels that cannot be."""
    spec: TrainSpec = work.spec
    images = load_images(work.dataset.path, "test", spec.range)
    if images is None or not has_labels(work.dataset.path, "test"):
        return None
    return Tests(images, load_labels(work.dataset.path, "test", spec.architecture.classes))
