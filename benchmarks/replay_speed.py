"""A learn job with replay against the loop that one would write by hand: what learners of images and of classes share.

By hand is: images as one float tensor that rows are taken from, NCHW, eager, default Adam, as many old images as new
ones in a batch. Both start from the same weights, see the same images in the same order, and take turns in one run;
medians count.
"""

import os
import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.plain import Clock, Row, apart, pictures
from engine.data import Images, shuffled
from engine.device import prepare
from engine.errors import Stopped
from engine.run import run
from engine.strategies.replay import Replay
from engine.weights import save_weights
from engine.work import DatasetInput, LearnerInput, ModelInput, TaskInput, Work
from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape
from flashcards.contract.specs import LearnSpec, job_spec

NOBODY = "0" * 32
RANGE = (0.0, 1.0)
GATE = 0.95


@dataclass(frozen=True)
class ByHand:
    """What the loop by hand is to teach, and how it scores."""

    model: torch.nn.Module
    train_rows: np.ndarray
    score: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    metric: str  # as the job calls its loss
    targets: torch.Tensor | None = None  # of new images and of old ones; None: the images themselves
    old_targets: torch.Tensor | None = None


@dataclass(frozen=True)
class Scene:
    """A learner that has learnt one task and kept some of its images, and the next task."""

    folder: Path
    architecture: Architecture  # of the network that it has
    learner: LearnerInput
    new: Images
    old: Images
    spec: LearnSpec
    threads: int

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
        work = Work(
            spec=self.spec,
            out=out,
            model=model,
            dataset=DatasetInput(path=self.folder / "new.npz", digest=""),
            learner=self.learner,
            resume_seconds=float("inf"),
            threads=self.threads,
        )
        with suppress(Stopped):
            run(work, clock, lambda: len(clock.curve) >= self.epochs)
        return clock

    def by_hand(self, hand: ByHand, clock: Clock) -> Clock:
        spec, cpu = self.spec, torch.device("cpu")
        optimizer = torch.optim.Adam(hand.model.parameters(), lr=spec.learning_rate)
        new = self.new.batch(np.arange(len(self.new)), cpu).contiguous()
        old = self.old.batch(np.arange(len(self.old)), cpu).contiguous()
        replay = Replay(self.old, spec.seed, spec.batch_size)  # for its order alone
        for epoch in range(1, self.epochs + 1):
            order, total = hand.train_rows[shuffled(len(hand.train_rows), spec.seed, epoch)], 0.0
            replay.begin_epoch(epoch, len(order))
            for first in range(0, len(order), spec.batch_size):
                chosen = order[first : first + spec.batch_size]
                kept = replay.order[first : first + len(chosen)]
                x, c = new[chosen], old[kept]
                y = hand.model(torch.cat([x, c]))
                error = hand.score(y[: len(x)], x if hand.targets is None else hand.targets[chosen])
                loss = error + hand.score(y[len(x) :], c if hand.old_targets is None else hand.old_targets[kept])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += error.item() * len(x)
                clock.progress(None)
            clock.metric(epoch, {hand.metric: total / len(order)})
        return clock


def learner_input(folder: Path, scenario: str, architecture: Architecture, **fields: Any) -> LearnerInput:
    """One that has learnt a task by `coreset`."""
    classes = {"classes": fields.pop("classes")} if "classes" in fields else {}
    return LearnerInput(
        scenario=scenario,
        noise=0.1,
        clip=True,
        architecture=architecture,
        range=RANGE,
        tasks=[TaskInput(name="old", **classes)],
        measures=[],
        images=folder / "kept.npz",
        **fields,
    )


def old_and_new(image: ImageShape, batch: int, batches: int) -> list[np.ndarray]:
    """Of the new ones a tenth is held out."""
    half = batch * batches // 2
    return np.split(pictures(batch * batches * 10 // 9 + half, image), [half])


def keep_network(folder: Path, network: torch.nn.Module, architecture: Architecture, image: ImageShape) -> None:
    save_weights(folder / "model.safetensors", network.state_dict(), architecture, image, RANGE)


def task(batch: int, epochs: int) -> LearnSpec:
    asked = {"kind": "learn", "learner": f"learner_{NOBODY}", "dataset": f"dataset_{NOBODY}", "seed": 0}
    asked |= {"strategy": {"kind": "coreset"}, "batch_size": batch, "decay": 0}
    # One epoch more than is measured: both sides are stopped within it, before anything else is done.
    spec: LearnSpec = job_spec.validate_python(asked | {"epochs": epochs + 1, "patience": epochs + 1})
    return spec


def ready(threads: int | None) -> int:
    """How many threads both sides have."""
    found = threads or os.cpu_count() or 1
    prepare("cpu", found)
    return found


@dataclass(frozen=True)
class Race:
    rows: list[Row]
    rate: float  # new images a second of the job
    ratio: float  # by the loop by hand

    @property
    def holds(self) -> bool:
        return self.ratio >= GATE


def race(
    scene: Scene, hand: Callable[[], ByHand], rounds: int, clock: Callable[[], Clock], beside: Callable[[], None]
) -> Race:
    """`beside` takes a turn as well, after each round."""
    ours, plain = [], []
    for number in range(rounds):
        ours.append(scene.learn_job(scene.folder / str(number), clock()))
        plain.append(scene.by_hand(hand(), clock()))
        beside()
    batch = scene.spec.batch_size
    fast, slow = (batch / statistics.median(s for each in side for s in each.seconds) for side in (ours, plain))
    what = f"{scene.architecture.name}, {scene.new.shape}, {scene.threads} threads, batch {batch} new + {batch} old"
    rows = [
        (f"by hand, {what}", f"{slow:.1f} images/s", "new images"),
        ("learn job", f"{fast:.1f} images/s", ""),
        ("learn job by the loop by hand", f"{fast / slow:.2f}x", f"gate >= {GATE}x"),
        ("loss of both: largest difference", apart(ours[0], plain[0]), "the same work: mere rounding"),
    ]
    return Race(rows, fast, fast / slow)


def show(console: Console, title: str, rows: list[Row], holds: bool) -> int:
    table = Table("what", "figure", "bar", title=f"{title}, measured on this machine in this run")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"gate: {'holds' if holds else 'FAILS'}")
    return 0 if holds else 1
