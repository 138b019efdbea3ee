"""What every bench of speed stands beside: the paper's layers as a reader would write them, and how both are timed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch import nn

from engine.models.blk import BlkAutoencoder
from engine.work import Report
from flashcards.contract.image import ImageShape
from flashcards.contract.resources import Progress

Row = tuple[str, str, str]
"""What was measured, the figure, and its bar."""

Seconds = Callable[[], float]


def textbook(network: BlkAutoencoder) -> nn.Sequential:
    """The same weights in the layers of the paper, none of them moved or folded."""
    encoder, decoder = network.encoder, network.decoder
    layers = [encoder.stem, nn.Tanh()]
    for conv in encoder.blocks:
        layers += [conv, nn.Tanh(), nn.MaxPool2d(2)]
    layers += [encoder.latent, nn.Tanh(), decoder.stem, nn.Tanh()]
    for conv in decoder.blocks:
        layers += [nn.Upsample(scale_factor=2, mode="nearest"), conv, nn.Tanh()]
    return nn.Sequential(*layers, decoder.head)


@dataclass
class Clock(Report):
    """How long each step took that followed another step of its epoch, and the mean loss of every epoch."""

    clock: Seconds
    seconds: list[float] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)
    last: float | None = None

    def progress(self, progress: Progress) -> None:
        now = self.clock()
        if self.last is not None:
            self.seconds.append(now - self.last)
        self.last = now

    def metric(self, step: int, values: dict[str, float]) -> None:
        self.curve.append(values["train_mae"])
        self.last = None

    def resume_point(self, path: Path, step: int) -> None: ...

    def note(self, text: str) -> None: ...


def apart(one: Clock, other: Clock) -> str:
    """Rounding grows from step to step: to Adam's first ones a tiny gradient is as good as a large one."""
    return f"{100 * max(abs(a - b) / b for a, b in zip(one.curve, other.curve, strict=True)):.5f} %"


def pictures(count: int, image: ImageShape) -> np.ndarray:
    """Smooth ones: two waves across each, in colours of their own."""
    random = np.random.default_rng(0)
    y, x = np.mgrid[0 : image.height, 0 : image.width] / max(image.height, image.width)
    turns = random.uniform(-2, 2, (count, 2, 1, 1, image.channels)) * 2 * np.pi
    start = random.uniform(0, 2 * np.pi, (count, 1, 1, image.channels))
    waves_NHWC = np.sin(turns[:, 0] * x[..., None] + turns[:, 1] * y[..., None] + start)
    return np.rint((waves_NHWC + 1) * 127.5).astype(np.uint8)
