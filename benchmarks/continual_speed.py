"""`make bench-continual-speed`: a learn job with replay against the loop that one would write by hand.

By hand is: the paper's layers, NCHW, eager, default Adam, images as one float tensor that rows are taken from, as many
old ones as new ones in a batch. Both start from the same weights and see the same images in the same order, and take
turns in one run; medians count. `--avalanche PYTHON` names the Python of an environment that has avalanche-lib 0.6:
its replay takes turns as well, on a network and images of the same size.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn import functional as F

from benchmarks.plain import Clock, Row, apart, pictures, textbook
from engine.data import Images, hold_out, shuffled
from engine.device import prepare
from engine.errors import Stopped
from engine.models.blk import BlkAutoencoder
from engine.run import run
from engine.strategies.replay import Replay
from engine.weights import save_weights
from engine.work import DatasetInput, LearnerInput, ModelInput, TaskInput, Work
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape
from flashcards.contract.specs import LearnSpec, job_spec

NOBODY = "0" * 32
RANGE = (0.0, 1.0)
GATE = 0.95
PEER = Path(__file__).with_name("avalanche_replay.py")


@dataclass(frozen=True)
class Scene:
    """A learner that has learnt one task and kept some of its images, and the next task."""

    folder: Path
    architecture: BlkArchitecture
    image: ImageShape
    new: Images
    old: Images
    spec: LearnSpec
    threads: int

    @classmethod
    def build(
        cls,
        folder: Path,
        architecture: BlkArchitecture,
        image: ImageShape,
        batch: int,
        batches: int,
        epochs: int,
        threads: int,
    ) -> "Scene":
        x_NHWC = pictures(batch * batches * 10 // 9 + batch * batches // 2, image)
        old_NHWC, new_NHWC = np.split(x_NHWC, [batch * batches // 2])
        np.savez(folder / "new.npz", x=new_NHWC, x_test=old_NHWC[:1])
        np.savez(folder / "kept.npz", x_1=old_NHWC)
        network = BlkAutoencoder(architecture, image, torch.Generator().manual_seed(0))
        save_weights(folder / "model.safetensors", network.state_dict(), architecture, image, RANGE)
        asked = {"kind": "learn", "learner": f"learner_{NOBODY}", "dataset": f"dataset_{NOBODY}", "seed": 0}
        # One epoch more than is measured: both sides are stopped within it, before anything else is done.
        asked |= {"strategy": {"kind": "coreset"}, "batch_size": batch, "decay": 0}
        asked |= {"epochs": epochs + 1, "patience": epochs + 1}
        spec = job_spec.validate_python(asked)
        return cls(folder, architecture, image, Images(new_NHWC, RANGE), Images(old_NHWC, RANGE), spec, threads)

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
            input=self.image,
            range=RANGE,
            made_here=True,
        )
        learner = LearnerInput(
            scenario="reconstruction",
            noise=0.1,
            clip=True,
            architecture=self.architecture,
            range=RANGE,
            tasks=[TaskInput(name="old")],
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
        network = BlkAutoencoder(self.architecture, self.image, torch.Generator().manual_seed(0))
        model = textbook(network)
        optimizer = torch.optim.Adam(model.parameters(), lr=spec.learning_rate)
        new = self.new.batch(np.arange(len(self.new)), every).contiguous()
        old = self.old.batch(np.arange(len(self.old)), every).contiguous()
        rows, _ = hold_out(len(new), spec.validation_share, spec.seed)
        replay = Replay(self.old, spec.seed, spec.batch_size)  # for its order alone
        for epoch in range(1, self.epochs + 1):
            order, total = rows[shuffled(len(rows), spec.seed, epoch)], 0.0
            replay.begin_epoch(epoch, len(rows))
            for first in range(0, len(order), spec.batch_size):
                x = new[order[first : first + spec.batch_size]]
                c = old[replay.order[first : first + len(x)]]
                y = model(torch.cat([x, c]))
                error = F.l1_loss(y[: len(x)], x)
                loss = error + F.l1_loss(y[len(x) :], c)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += error.item() * len(x)
                clock.progress(None)
            clock.metric(epoch, {"train_mae": total / len(order)})
        return clock


def bench(
    architecture: BlkArchitecture = BlkArchitecture(blocks=4, filters=32),
    image: ImageShape = ImageShape(32, 32, 3),
    batch: int = 64,
    batches: int = 8,
    epochs: int = 3,
    rounds: int = 5,
    threads: int | None = None,
    avalanche: str | None = None,
    clock: Callable[[], float] = perf_counter,
) -> tuple[list[Row], bool]:
    threads = threads or os.cpu_count() or 1
    prepare("cpu", threads)
    ours, plain, peer = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene.build(Path(folder), architecture, image, batch, batches, epochs, threads)
        for number in range(rounds):
            ours.append(scene.learn_job(Path(folder) / str(number), Clock(clock)))
            plain.append(scene.by_hand(Clock(clock)))
            if avalanche:
                peer.append(avalanche_rate(avalanche, scene, batch * batches))
    fast, slow = (batch / statistics.median(s for each in side for s in each.seconds) for side in (ours, plain))
    what = f"{architecture.name}, {image}, {threads} threads, batch {batch} new + {batch} old"
    rows = [
        (f"by hand, {what}", f"{slow:.1f} images/s", "new images"),
        ("learn job", f"{fast:.1f} images/s", ""),
        ("learn job by the loop by hand", f"{fast / slow:.2f}x", f"gate >= {GATE}x"),
        ("loss of both: largest difference", apart(ours[0], plain[0]), "the same work: mere rounding"),
    ]
    if peer:
        rate = statistics.median(peer)
        rows += [("Avalanche's replay", f"{rate:.1f} images/s", ""), ("learn job by it", f"{fast / rate:.2f}x", "")]
    return rows, fast / slow >= GATE


def avalanche_rate(python: str, scene: Scene, images: int) -> float:
    """Without this tree on its path: what it imports is the other environment's."""
    asked = {"side": scene.image.height, "blocks": scene.architecture.blocks, "filters": scene.architecture.filters}
    asked |= {"images": images, "kept": len(scene.old), "batch": scene.spec.batch_size}
    asked |= {"epochs": scene.epochs, "threads": scene.threads}
    done = subprocess.run(
        [python, str(PEER), json.dumps(asked)], capture_output=True, text=True, cwd=scene.folder, check=False
    )
    if done.returncode:
        raise SystemExit(f"{python} could not run {PEER.name}:\n{done.stderr[-2000:]}")
    found: float = json.loads(done.stdout.splitlines()[-1])["images_per_second"]
    return found


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.continual_speed", description=__doc__)
    parser.add_argument("--avalanche", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int)
    asked = parser.parse_args(words)
    rows, holds = bench(rounds=asked.rounds, threads=asked.threads, avalanche=asked.avalanche)
    table = Table("what", "figure", "bar", title="Learning with replay, measured on this machine in this run")
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(f"gate: {'holds' if holds else 'FAILS'}")
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
