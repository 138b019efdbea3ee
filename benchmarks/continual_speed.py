"""`make bench-continual-speed`: a learn job with replay against the loop that one would write by hand.

By hand are the paper's layers, in the loop of `benchmarks.replay_speed`. `--avalanche PYTHON` names the Python of an
environment that has avalanche-lib 0.6: its replay takes turns as well, on a network and images of the same size.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from torch.nn import functional as F

from benchmarks.plain import Clock, Row, textbook
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
from engine.data import Images, hold_out
from engine.models.blk import BlkAutoencoder
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

PEER = Path(__file__).with_name("avalanche_replay.py")


def scene_of(
    folder: Path,
    architecture: BlkArchitecture,
    image: ImageShape,
    batch: int,
    batches: int,
    epochs: int,
    threads: int,
) -> Scene:
    old_NHWC, new_NHWC = old_and_new(image, batch, batches)
    np.savez(folder / "new.npz", x=new_NHWC, x_test=old_NHWC[:1])
    np.savez(folder / "kept.npz", x_1=old_NHWC)
    keep_network(folder, first_network(architecture, image), architecture, image)
    learner = learner_input(folder, "reconstruction", architecture)
    new, old = (Images(x_NHWC, RANGE) for x_NHWC in (new_NHWC, old_NHWC))
    return Scene(folder, architecture, learner, new, old, task(batch, epochs), threads)


def first_network(architecture: BlkArchitecture, image: ImageShape) -> BlkAutoencoder:
    return BlkAutoencoder(architecture, image, torch.Generator().manual_seed(0))


def by_hand(scene: Scene) -> ByHand:
    model = textbook(first_network(scene.architecture, scene.new.shape))
    rows, _ = hold_out(len(scene.new), scene.spec.validation_share, scene.spec.seed)
    return ByHand(model, rows, F.l1_loss, "train_mae")


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
    peer: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        scene = scene_of(Path(folder), architecture, image, batch, batches, epochs, ready(threads))

        def beside() -> None:
            if avalanche:
                peer.append(avalanche_rate(avalanche, scene, batch * batches))

        found = race(scene, lambda: by_hand(scene), rounds, lambda: Clock(clock), beside)
    rows = found.rows
    if peer:
        rate = statistics.median(peer)
        told = (
            ("Avalanche's replay", f"{rate:.1f} images/s", ""),
            ("learn job by it", f"{found.rate / rate:.2f}x", ""),
        )
        rows = [*rows, *told]
    return rows, found.holds


def avalanche_rate(python: str, scene: Scene, images: int) -> float:
    """Without this tree on its path: what it imports is the other environment's."""
    blocks, filters = scene.architecture.blocks, scene.architecture.filters
    asked = {"side": scene.new.shape.height, "blocks": blocks, "filters": filters}
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
    return show(Console(), "Learning with replay", rows, holds)


if __name__ == "__main__":
    raise SystemExit(main())
