"""The train job: an autoencoder learns the images of a dataset, and what is to be kept of them is measured."""

from collections.abc import Callable

import numpy as np
import torch

from engine import capsule
from engine.data import Images, load_images
from engine.errors import DatasetUnfit
from engine.files import digest_of
from engine.lesson import plain_lesson
from engine.pictures import save_reconstructions
from engine.teach import Taught, teach
from engine.weights import WEIGHTS
from engine.work import Outcome, Product, Report, Work
from flashcards.contract.results import TrainResult
from flashcards.contract.specs import TrainSpec


def train(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec, device = work.spec, torch.device(work.device)
    images = load(work, report)

    def show(taught: Taught) -> list[Product]:
        return [save_reconstructions(work.out, taught.network, images, taught.validation_rows, device)]

    taught = teach(work, plain_lesson(spec, images), report, stop, show)
    every = np.arange(len(images))
    meter = capsule.measure(taught.network, images, every, taught.chunk, device, taught.stop_if(stop))
    measured = meter.capsule(digest_of(work.out / WEIGHTS.name))
    result = TrainResult(
        parameters=spec.architecture.parameters(images.shape),
        images=len(taught.train_rows),
        capsule=measured.facts,
        **taught.told(work),
    )
    return Outcome(result, [*taught.products, capsule.save(work.out, measured)])


def load(work: Work, report: Report) -> Images:
    spec: TrainSpec = work.spec
    images = load_images(work.dataset.path, "train", spec.range)
    if images is None:
        raise DatasetUnfit("the dataset has no training images: it needs an array named x_train or x")
    if (words := spec.architecture.misfit(images.shape)) is not None:
        raise DatasetUnfit(words)
    if (words := images.stray()) is not None:
        report.note(words)
    return images
