"""What was tried to let cards keep more of a classifier: each a small change of `flashcards` of classes.

They are not strategies of the product: what helps on the mean of several seeds becomes part of it, the rest is here so
that it can be tried again. `make bench-classification BENCH="--bar losses"` prints them beside each other.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from engine import strategies
from engine.resume import Standing
from engine.strategies.base import Strategy
from engine.strategies.class_flashcards import ClassFlashcards


class Veiled(ClassFlashcards):
    """Half of the new images are shown as the old autoencoder gives them back. Cards are blurred and images are not: a
    classifier that sees nothing else of old and new learns to tell blurred from sharp, and takes all sharp for new."""

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.replay is not None:
            network, _ = self.setting.maker
            x_BCHW = x_BCHW.clone()
            with torch.no_grad():
                x_BCHW[::2] = network(x_BCHW[::2]).clamp(*self.setting.images.range)
        return super().loss(x_BCHW, target, now)


class Heavier(ClassFlashcards):
    """As heavy as the earlier tasks are many: a batch has as much of one new task as of all old ones together."""

    def __init__(self, setting: strategies.Setting) -> None:
        super().__init__(setting)
        self.weight *= max(1, len(self.sources))


@contextmanager
def in_place(trial: type[Strategy] | None) -> Iterator[None]:
    """While it lasts, `flashcards` of a classifier is the trial."""
    before = strategies.OF_CLASSES["flashcards"]
    strategies.OF_CLASSES["flashcards"] = trial or before
    try:
        yield
    finally:
        strategies.OF_CLASSES["flashcards"] = before
