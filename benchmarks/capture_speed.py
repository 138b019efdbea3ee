"""`make bench-capture-speed`: captures and trainings against the plain loops that a reader of the paper would write.

Plain is: the paper's layers one after another, NCHW, eager, default Adam. Both sides take turns in one run, so that
whatever else the machine does hits both alike, and medians count; still, nothing else should run meanwhile. Where
something must, `python -m benchmarks.capture_speed --one-core` takes one thread and counts the time it had a core.
"""

import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional as F

from benchmarks.plain import Clock, Row, Seconds, apart, pictures, textbook
from engine.data import Images, hold_out, shuffled
from engine.device import prepare
from engine.errors import Collapsed
from engine.making import iterate
from engine.models import CHUNK
from engine.models.blk import BlkAutoencoder, multiplications
from engine.passes import Passes
from engine.passes.choose import choose
from engine.run import run
from engine.sources import PATTERNS
from engine.sources.maze import mazes
from engine.work import DatasetInput, Work
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape
from flashcards.contract.specs import TrainSpec, job_spec

Timed = dict[str, tuple[Callable[[], object], float]]
"""What is called, and how many images pass through at a call, or as many as would cost the same."""

console = Console()

PAPER, IMAGE = BlkArchitecture(blocks=4, filters=64), ImageShape(32, 32, 3)
RANGE = (0.0, 1.0)
NCHW, NHWC = torch.contiguous_format, torch.channels_last
PLAIN_BATCHES = (16, 64, 256)
R = 10
GATE = re.compile(r"gate (>=|<) ([0-9.]+)")
NUMBER = re.compile(r"[0-9.]+")


def by_turns(timed: Timed, rounds: int, seconds: float, clock: Seconds) -> dict[str, float]:
    """Images a second: the median over the rounds."""
    rates: dict[str, list[float]] = {name: [] for name in timed}
    for number in range(rounds + 1):
        for name, (call, images) in timed.items():
            calls, began = 0, clock()
            while not calls or clock() - began < seconds:
                call()
                calls += 1
            if number:  # the first round warms caches up
                rates[name].append(calls * images / (clock() - began))
    return {name: statistics.median(found) for name, found in rates.items()}


# Capture


def bench_capture(
    architecture: BlkArchitecture = PAPER,
    image: ImageShape = IMAGE,
    batches: tuple[int, ...] = PLAIN_BATCHES,
    gemm: tuple[int, ...] = (1024, 2048),
    rounds: int = 7,
    seconds: float = 1.5,
    threads: int | None = None,
    clock: Seconds = time.perf_counter,
) -> list[Row]:
    threads = threads or os.cpu_count() or 1
    prepare("cpu", threads)
    network = BlkAutoencoder(architecture, image, torch.Generator().manual_seed(0))
    network.requires_grad_(False).eval()
    cost = multiplications(architecture, image)
    passes = chosen(network, image, cost, threads)
    latent = ImageShape(*architecture.latent_shape(image))
    decoding = chosen(network.decoder, latent, cost // 2, threads)

    x_BCHW = torch.from_numpy(mazes(0, 0, CHUNK, image, RANGE)).permute(0, 3, 1, 2)
    z_BCHW = torch.rand(CHUNK, latent.channels, latent.height, latent.width) * 2 - 1
    with torch.inference_mode():
        rates = by_turns(
            {
                **{f"plain {batch}": plain_loop(network, image, batch) for batch in batches},
                "capture": (lambda: iterate(passes, x_BCHW, R, lambda _: None, lambda: False), CHUNK * R),
                **{f"gemm {side}": matrix_product(side, cost) for side in gemm},
                "decoder": (lambda: decoding(z_BCHW), CHUNK),
                **{name: patterns_of(name, image) for name in PATTERNS},
            },
            rounds,
            seconds,
            clock,
        )
    batch = max(batches, key=lambda batch: rates[f"plain {batch}"])
    plain, fast = rates[f"plain {batch}"], rates["capture"]
    product = max(rates[f"gemm {side}"] for side in gemm)
    share = {name: 1 / (1 + R * rates[name] / fast) for name in PATTERNS}
    what = f"{architecture.name}, {image}, {threads} threads"
    return [
        (f"plain loop, {what}, batch {batch}", f"{plain:.1f} passes/s", f"the best of batch {batches}"),
        (f"capture by {passes.name}", f"{fast:.1f} passes/s", f"chunks of {CHUNK}, r = {R}"),
        ("capture by the plain loop", f"{fast / plain:.2f}x", "gate >= 1.8x, target 2.2x"),
        ("float32 matrix product", f"{product * cost / 1e9:.1f} GMAC/s", f"{product:.1f} passes/s if that were all"),
        ("capture by the matrix product", f"{fast / product:.2f}x", "gate >= 0.95x"),
        (f"decoder alone by {decoding.name}", f"{rates['decoder']:.1f} images/s", "latents to images"),
        ("decoder alone by a capture's pass", f"{rates['decoder'] / fast:.2f}x", "no bar"),
        *(
            (f"making patterns, {name}: of a capture's time", f"{share[name] * 100:.2f} %", "gate < 3 %")
            for name in PATTERNS
        ),
    ]


def chosen(network: nn.Module, image: ImageShape, cost: int, threads: int) -> Passes:
    return choose(
        network,
        image,
        RANGE,
        multiplications=cost,
        images=10**9,
        chunk=CHUNK,
        device=torch.device("cpu"),
        threads=threads,
        note=console.print,
    )


def patterns_of(name: str, image: ImageShape) -> tuple[Callable[[], object], float]:
    make, _ = PATTERNS[name]
    return lambda: make(0, 0, CHUNK, image, RANGE), CHUNK


def plain_loop(network: BlkAutoencoder, image: ImageShape, batch: int) -> tuple[Callable[[], object], float]:
    model, x = textbook(network), torch.rand(batch, image.channels, image.height, image.width)
    passes = max(1, R * CHUNK // batch // 4)

    def loop() -> torch.Tensor:
        y = x
        for _ in range(passes):
            y = model(y)
        return y

    return loop, batch * passes


def matrix_product(side: int, cost: int) -> tuple[Callable[[], object], float]:
    one, other, out = (torch.rand(side, side) for _ in range(3))
    return lambda: torch.mm(one, other, out=out), side**3 / cost


# Training


def bench_training(
    architecture: BlkArchitecture = PAPER,
    image: ImageShape = IMAGE,
    batch: int = 64,
    batches: int = 5,
    epochs: int = 4,
    rounds: int = 3,
    threads: int | None = None,
    clock: Seconds = time.perf_counter,
) -> list[Row]:
    threads = threads or os.cpu_count() or 1
    prepare("cpu", threads)
    ours, plain = [], []
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "images.npz"
        x_NHWC = pictures(batch * batches * 10 // 9, image)
        np.savez(dataset, x=x_NHWC)
        images = Images(x_NHWC, RANGE)
        asked = {"architecture": architecture, "epochs": epochs, "batch_size": batch, "decay": 0, "seed": 0}
        spec = job_spec.validate_python({"kind": "train", "dataset": "dataset_" + "0" * 32} | asked)
        for number in range(rounds):
            out = Path(folder) / str(number)
            out.mkdir()
            ours.append(Clock(clock))
            work = Work(
                spec=spec,
                out=out,
                dataset=DatasetInput(path=dataset, digest=""),
                resume_seconds=float("inf"),
                threads=threads,
            )
            with suppress(Collapsed):  # so few steps need not pass its bar
                run(work, ours[-1], lambda: False)
            plain.append(plain_training(spec, images, Clock(clock)))
        other = plain_training(spec, images, Clock(clock), NHWC)
    fast, slow = (
        batch / statistics.median(seconds for clock in side for seconds in clock.seconds) for side in (ours, plain)
    )
    what = f"{architecture.name}, {image}, {threads} threads, batch {batch}"
    return [
        (f"plain training, {what}", f"{slow:.1f} images/s", ""),
        ("training", f"{fast:.1f} images/s", ""),
        ("training by the plain one", f"{fast / slow:.2f}x", "gate >= 1.1x, target 1.4x"),
        ("loss of the plain one in another memory format: largest difference", apart(other, plain[0]), "mere rounding"),
        (f"loss, over {epochs * batches} steps: largest difference", apart(ours[0], plain[0]), "of the same order"),
    ]


def plain_training(spec: TrainSpec, images: Images, clock: Clock, layout: torch.memory_format = NCHW) -> Clock:
    """The same start, the same images in the same order, from one tensor in memory."""
    network = BlkAutoencoder(spec.architecture, images.shape, torch.Generator().manual_seed(spec.seed))
    model = textbook(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=spec.learning_rate)
    rows, _ = hold_out(len(images), spec.validation_share, spec.seed)
    x = images.batch(np.arange(len(images)), torch.device("cpu")).contiguous()
    for epoch in range(1, spec.epochs + 1):
        order, total = rows[shuffled(len(rows), spec.seed, epoch)], 0.0
        for first in range(0, len(order), spec.batch_size):
            batch = x[order[first : first + spec.batch_size]].contiguous(memory_format=layout)
            loss = F.l1_loss(model(batch), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
            clock.progress(None)
        clock.metric(epoch, {"train_mae": total / len(order)})
    return clock


BENCHES = {"capture": bench_capture, "training": bench_training}


def missed(rows: list[Row]) -> list[str]:
    """What does not reach its gate."""
    found = []
    for what, figure, bar in rows:
        if (gate := GATE.match(bar)) is not None:
            reached, (sign, bound) = float(NUMBER.match(figure)[0]), gate.groups()
            if not (reached >= float(bound) if sign == ">=" else reached < float(bound)):
                found.append(what)
    return found


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    one_core = {"threads": 1, "clock": time.process_time} if "--one-core" in words else {}
    wanted = [name for name in words if name in BENCHES] or list(BENCHES)
    table = Table("what", "figure", "bar", title="Captures and trainings, measured on this machine in this run")
    short = []
    with console.status("") as status:
        for name in wanted:
            status.update(f"measuring {name} ({wanted.index(name) + 1} of {len(wanted)}), about two minutes each")
            rows = BENCHES[name](**one_core)
            short += missed(rows)
            for row in rows:
                table.add_row(*row)
            table.add_section()
    console.print(table)
    console.print(f"gates missed: {', '.join(short)}" if short else "every gate holds")
    return 1 if short else 0


if __name__ == "__main__":
    raise SystemExit(main())
