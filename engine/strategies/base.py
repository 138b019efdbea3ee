"""Hooks around the steps of a training, in the order they are called:

    begin, take_up?, (begin_epoch, (begin_step, loss, after_backward, after_step)*, keep_best?)*, merge, end

Those here do nothing but score a batch by the lesson's aim, say mean |f(x) - x|, and what is replayed beside it, mean
|f(c) - c|; of a classifier, cross-entropy and that against old answers. `tensors` is what a resume point has to hold
for the next step to be the same, `end` what a version keeps.
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
    labels_N: np.ndarray | None = None  # of a learner of classes, of every image


class Strategy:
    setting: Setting
    replay: Replay | None = None
    answers_NK: torch.Tensor | None = None  # of a learner of classes: how what is replayed should be answered
    weight = 1.0
    makes_cards = False  # and so needs the autoencoder beside a classifier to learn the task as well
    recipes: list[Recipe] = []

    def material(self) -> Material:
        """The new images, unless the strategy has others beside them."""
        setting = self.setting
        labels_N = None if setting.classes is None else setting.classes.labels_N
        return Material(setting.images, setting.train_rows, setting.validation_rows, labels_N)

    @property
    def sees_old(self) -> bool:
        """Then new classes are told apart from old ones as well. Who sees only new ones would unlearn all others."""
        return self.replay is not None

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
        rows = self.replay.rows(now.batch, len(x_BCHW))
        old_BCHW = self.replay.images.batch(rows, x_BCHW.device)
        self.shown_BCHW = torch.cat([x_BCHW, old_BCHW])
        y, penalty = self.network.in_training(self.seen(self.shown_BCHW), self.generator)
        error = self.score(y[: len(x_BCHW)], target)
        old = old_BCHW if self.answers_NK is None else self.answers_NK[rows]
        return error + self.weight * self.score(y[len(x_BCHW) :], old) + penalty, error

    def seen(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        """Old ones get noise as well: it is the denoising of the old tasks that is to be kept."""
        return x_BCHW if self.noise is None else self.noise.add(x_BCHW, self.generator)

    def after_backward(self) -> None: ...

    def after_step(self) -> None: ...

    def keep_best(self) -> None:
        """The weights of this epoch are the best so far."""

    def merge(self, network: torch.nn.Module) -> dict[str, torch.Tensor] | None:
        """What the model is in place of the weights of its best epoch, which `network` has; None: those."""
        return None

    def tensors(self) -> dict[str, torch.Tensor]:
        return {}

    def end(self, network: torch.nn.Module) -> Kept:
        """`network` has the weights of its best epoch."""
        return Kept()

    def products(self) -> Iterable[Product]:
        """Pictures of what was replayed."""
        return ()
