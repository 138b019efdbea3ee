"""A learn job of a classifier with replay against the loop that one would write by hand, on the same network."""

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from torch.nn import functional as F

from benchmarks.plain import Clock, Row
from benchmarks.replay_speed import (
    RANGE,
    ByHand,
    Scene,
    keep_network,
    learner_input,
    old_and_new,
    race,
    ready,
    show,
    task,
)
from engine.data import Images, hold_out_of_each
from engine.models import build
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape

CLASSES = 10


class ClassClock(Clock):
    def metric(self, step: int, values: dict[str, float]) -> None:
        super().metric(step, {"train_mae": values["train_log_loss"]})


def scene_of(folder: Path, name: str, image: ImageShape, batch: int, batches: int, epochs: int, threads: int) -> Scene:
    """Ten classes are known, and ten more are learnt."""
    old_NHWC, new_NHWC = old_and_new(image, batch, batches)
    tests = {"x_test": old_NHWC[:CLASSES], "y_test": np.arange(CLASSES)}
    np.savez(folder / "new.npz", x=new_NHWC, y=labels_of(new_NHWC), **tests)
    np.savez(folder / "kept.npz", x_1=old_NHWC, y_1=labels_of(old_NHWC))
    bare = architecture_spec.validate_python(name)
    architecture = bare.model_copy(update={"heads": (CLASSES,)})
    keep_network(folder, build(architecture, image, torch.Generator().manual_seed(0)), architecture, image)
    autoencoder = architecture_spec.validate_python("tasknet_ae")
    learner = learner_input(folder, "task_incremental", bare, autoencoder=autoencoder, classes=CLASSES)
    new, old = (Images(x_NHWC, RANGE) for x_NHWC in (new_NHWC, old_NHWC))
    return Scene(folder, architecture, learner, new, old, task(batch, epochs), threads)


def labels_of(x_NHWC: np.ndarray) -> np.ndarray:
    return np.arange(len(x_NHWC)) % CLASSES


def by_hand(scene: Scene) -> ByHand:
    both = scene.architecture.model_copy(update={"heads": (CLASSES, CLASSES)})
    model = build(both, scene.new.shape, torch.Generator().manual_seed(0)).train()
    new, old = (labels_of(images.x_NHWC) for images in (scene.new, scene.old))
    rows, _ = hold_out_of_each(new, scene.spec.validation_share, scene.spec.seed)
    targets = (torch.from_numpy(new) + CLASSES, torch.from_numpy(old))
    return ByHand(model, rows, F.cross_entropy, "train_log_loss", *targets)


def bench(
    architecture: str = "tasknet",
    image: ImageShape = ImageShape(32, 32, 3),
    batch: int = 64,
    batches: int = 8,
    epochs: int = 3,
    rounds: int = 5,
    threads: int | None = None,
) -> tuple[list[Row], bool]:
    with tempfile.TemporaryDirectory() as folder:
        scene = scene_of(Path(folder), architecture, image, batch, batches, epochs, ready(threads))
        found = race(scene, lambda: by_hand(scene), rounds, lambda: ClassClock(perf_counter), lambda: None)
    return found.rows, found.holds


def tell(console: Console, threads: int | None) -> int:
    rows, holds = bench(threads=threads)
    return show(console, "A classifier with replay", rows, holds)
