"""A learn job of a classifier with replay against the loop that one would write by hand.

By hand is: the same network, images as one float tensor that rows are taken from, default Adam, as many old images as
new ones in a batch. Both start from the same weights, see the same images in the same order, and take turns; medians
count.
"""

import os
import statistics
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn import functional as F

from benchmarks.plain import Clock, Row, apart, pictures
from engine.data import Images, hold_out_of_each, shuffled
from engine.device import prepare
from engine.errors import Stopped
from engine.models import build
from engine.run import run
from engine.strategies.replay import Replay
from engine.weights import save_weights
from engine.work import DatasetInput, LearnerInput, ModelInput, TaskInput, Work
from flashcards.contract.architecture import Architecture, architecture_spec
from flashcards.contract.image import ImageShape
from flashcards.contract.specs import LearnSpec, job_spec

NOBODY = "0" * 32
RANGE = (0.0, 1.0)
GATE = 0.95
CLASSES = 10


class ClassClock(Clock):
    def metric(self, step: int, values: dict[str, float]) -> None:
        super().metric(step, {"train_mae": values["train_log_loss"]})


@dataclass(frozen=True)
class Scene:
    """A learner that has learnt one task and kept some of its images, and the next task."""

    folder: Path
    architecture: Architecture  # with one head
    new: Images
    old: Images
    labels_N: np.ndarray
    spec: LearnSpec
    threads: int

    @classmethod
    def build(
        cls, folder: Path, name: str, image: ImageShape, batch: int, batches: int, epochs: int, threads: int
    ) -> "Scene":
        x_NHWC = pictures(batch * batches * 10 // 9 + batch * batches // 2, image)
        old_NHWC, new_NHWC = np.split(x_NHWC, [batch * batches // 2])
        labels = np.arange(len(new_NHWC)) % CLASSES
        np.savez(folder / "new.npz", x=new_NHWC, y=labels, x_test=old_NHWC[:CLASSES], y_test=np.arange(CLASSES))
        np.savez(folder / "kept.npz", x_1=old_NHWC, y_1=np.arange(len(old_NHWC)) % CLASSES)
        architecture = architecture_spec.validate_python(name).model_copy(update={"heads": (CLASSES,)})
        network = build(architecture, image, torch.Generator().manual_seed(0))
        save_weights(folder / "model.safetensors", network.state_dict(), architecture, image, RANGE)
        asked = {"kind": "learn", "learner": f"learner_{NOBODY}", "dataset": f"dataset_{NOBODY}", "seed": 0}
        # One epoch more than is measured: both sides are stopped within it, before anything else is done.
        asked |= {"strategy": {"kind": "coreset"}, "batch_size": batch, "decay": 0}
        asked |= {"epochs": epochs + 1, "patience": epochs + 1}
        spec = job_spec.validate_python(asked)
        return cls(folder, architecture, Images(new_NHWC, RANGE), Images(old_NHWC, RANGE), labels, spec, threads)

    @property
    def epochs(self) -> int:
        """That are measured."""
        return self.spec.epochs - 1

    def learn_job(self, out: Path, clock: Clock) -> Clock:
        out.mkdir()
        model = ModelInput(
            path=self.folder / "model.safetensors",
            digest="",
            architecture=self.architecture,
            input=self.new.shape,
            range=RANGE,
            made_here=True,
        )
        learner = LearnerInput(
            scenario="task_incremental",
            noise=0.1,
            clip=True,
            architecture=self.architecture.model_copy(update={"heads": ()}),
            autoencoder=architecture_spec.validate_python("tasknet_ae"),
            range=RANGE,
            tasks=[TaskInput(name="old", classes=CLASSES)],
            measures=[],
            images=self.folder / "kept.npz",
        )
        work = Work(
            spec=self.spec,
            out=out,
            model=model,
            dataset=DatasetInput(path=self.folder / "new.npz", digest=""),
            learner=learner,
            resume_seconds=float("inf"),
            threads=self.threads,
        )
        with suppress(Stopped):
            run(work, clock, lambda: len(clock.curve) >= self.epochs)
        return clock

    def by_hand(self, clock: Clock) -> Clock:
        spec, every = self.spec, torch.device("cpu")
        both = self.architecture.model_copy(update={"heads": (CLASSES, CLASSES)})
        model = build(both, self.new.shape, torch.Generator().manual_seed(0)).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=spec.learning_rate)
        new = self.new.batch(np.arange(len(self.new)), every).contiguous()
        old = self.old.batch(np.arange(len(self.old)), every).contiguous()
        labels = torch.from_numpy(self.labels_N) + CLASSES
        old_labels = torch.arange(len(old)) % CLASSES
        rows, _ = hold_out_of_each(self.labels_N, spec.validation_share, spec.seed)
        replay = Replay(self.old, spec.seed, spec.batch_size)  # for its order alone
        for epoch in range(1, self.epochs + 1):
            order, total = rows[shuffled(len(rows), spec.seed, epoch)], 0.0
            replay.begin_epoch(epoch, len(rows))
            for first in range(0, len(order), spec.batch_size):
                chosen = order[first : first + spec.batch_size]
                kept = replay.order[first : first + len(chosen)]
                y = model(torch.cat([new[chosen], old[kept]]))
                error = F.cross_entropy(y[: len(chosen)], labels[chosen])
                loss = error + F.cross_entropy(y[len(chosen) :], old_labels[kept])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += error.item() * len(chosen)
                clock.progress(None)
            clock.metric(epoch, {"train_log_loss": total / len(order)})
        return clock


def bench(
    architecture: str = "tasknet",
    image: ImageShape = ImageShape(32, 32, 3),
    batch: int = 64,
    batches: int = 8,
    epochs: int = 3,
    rounds: int = 5,
    threads: int | None = None,
) -> tuple[list[Row], bool]:
    threads = threads or os.cpu_count() or 1
    prepare("cpu", threads)
    ours, plain = [], []
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene.build(Path(folder), architecture, image, batch, batches, epochs, threads)
        for number in range(rounds):
            ours.append(scene.learn_job(Path(folder) / str(number), ClassClock(perf_counter)))
            plain.append(scene.by_hand(ClassClock(perf_counter)))
    fast, slow = (batch / statistics.median(s for each in side for s in each.seconds) for side in (ours, plain))
    what = f"{architecture}, {image}, {threads} threads, batch {batch} new + {batch} old"
    rows = [
        (f"by hand, {what}", f"{slow:.1f} images/s", "new images"),
        ("learn job", f"{fast:.1f} images/s", ""),
        ("learn job by the loop by hand", f"{fast / slow:.2f}x", f"gate >= {GATE}x"),
        ("loss of both: largest difference", apart(ours[0], plain[0]), "the same work: mere rounding"),
    ]
    return rows, fast / slow >= GATE


def tell(console: Console, threads: int | None) -> int:
    rows, holds = bench(threads=threads)
    table = Table("what", "figure", "bar", title="A classifier with replay, measured on this machine in this run")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"gate: {'holds' if holds else 'FAILS'}")
    return 0 if holds else 1
