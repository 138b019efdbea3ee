"""Hooks around the steps of a training, in the order they are called:

    begin, take_up?, (begin_epoch, (begin_step, loss, after_backward, after_step)*, keep_best?)*, end

Those here do nothing but score a batch by the lesson's aim, say mean |f(x) - x|, and what is replayed beside it, mean
|f(c) - c|. `tensors` is what a resume point has to hold for the next step to be the same, `end` what a version keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from engine.data import Images
from engine.resume import Standing, Training
from engine.strategies.replay import Replay
from engine.strategies.setting import Setting
from engine.work import Product
from flashcards.contract.recipe import Recipe

if TYPE_CHECKING:
    from engine.lesson import Lesson


@dataclass(frozen=True)
class Kept:
    """What a strategy hands to the next task, beside the network and the capsules."""

    state: dict[str, torch.Tensor] = field(default_factory=dict)
    images: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Material:
    """What is learnt from, and held out."""

    images: Images
    train_rows: np.ndarray
    validation_rows: np.ndarray


class Strategy:
    setting: Setting
    replay: Replay | None = None
    weight = 1.0
    recipes: list[Recipe] = []

    def material(self) -> Material:
        """The new images, unless the strategy has others beside them."""
        return Material(self.setting.images, self.setting.train_rows, self.setting.validation_rows)

    def begin(self, training: Training, lesson: Lesson) -> None:
        self.network, self.generator, self.noise = training.network, training.generator, lesson.noise
        self.score = lesson.aim.score
        self.train_images = len(lesson.train_rows)

    def take_up(self, tensors: dict[str, torch.Tensor]) -> None:
        """Go on from what `tensors` gave, the network being back already."""

    def begin_epoch(self, epoch: int) -> None:
        if self.replay is not None:
            self.replay.begin_epoch(epoch, self.train_images)

    def begin_step(self, rate: float) -> None:
        """For those that train a network of their own: it follows the learning rate of the one beside it."""

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        """What is descended, and the error on these images against what they should be answered with, which is told."""
        if self.replay is None:
            self.shown_BCHW = x_BCHW
            y, penalty = self.network.in_training(self.seen(x_BCHW), self.generator)
            error = self.score(y, target)
            return error + penalty, error
        # As many old ones as new ones, in one pass through the network.
        old_BCHW = self.replay.batch(now.batch, len(x_BCHW), x_BCHW.device)
        self.shown_BCHW = torch.cat([x_BCHW, old_BCHW])
        y_BCHW, penalty = self.network.in_training(self.seen(self.shown_BCHW), self.generator)
        error = self.score(y_BCHW[: len(x_BCHW)], target)
        return error + self.weight * self.score(y_BCHW[len(x_BCHW) :], old_BCHW) + penalty, error

    def seen(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        """Old ones get noise as well: it is the denoising of the old tasks that is to be kept."""
        return x_BCHW if self.noise is None else self.noise.add(x_BCHW, self.generator)

    def after_backward(self) -> None: ...

    def after_step(self) -> None: ...

    def keep_best(self) -> None:
        """The weights of this epoch are the best so far."""

    def tensors(self) -> dict[str, torch.Tensor]:
        return {}

    def end(self, network: torch.nn.Module) -> Kept:
        """`network` has the weights of its best epoch."""
        return Kept()

    def products(self) -> Iterable[Product]:
        """Pictures of what was replayed."""
        return ()
