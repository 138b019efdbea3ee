"""What a network is taught to do with an image: how a batch is scored, how held-out images are, and what the bar is.

The loop of `engine.teach` knows an aim by these; what it learns from, by which strategy, is none of an aim's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch.nn import functional as F

from engine.class_measures import accuracy, constant_accuracy, constant_log_loss, log_loss, scores
from engine.data import Images
from engine.errors import Collapsed
from engine.measures import mean_error, mse_B
from engine.resume import Standing
from engine.work import Report

if TYPE_CHECKING:
    from engine.teach import Taught

ALIKE = 0.01  # of the range: the error allowed where all images are the same one
SURER = 0.9  # of the log loss that knows the shares of the classes: below, something was learnt about single images
Predict = Callable[[torch.Tensor], torch.Tensor]


class Aim(Protocol):
    metric: str  # the error's name, behind train_, validation_ and constant_

    def target(self, x_BCHW: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        """What these rows should be answered with."""

    def score(self, answer: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Mean over the batch; what is descended."""

    def measure(
        self,
        predict: Predict,
        images: Images,
        rows: np.ndarray,
        chunk: int,
        device: torch.device,
        between: Callable[[], None],
    ) -> dict[str, float]:
        """The metric over these rows, and what is told beside it."""

    def constant(
        self, images: Images, train_rows: np.ndarray, rows: np.ndarray, chunk: int, device: torch.device
    ) -> float:
        """The metric of the best answer that does not look at the image."""

    def refuse_collapse(self, taught: Taught, device: torch.device, report: Report) -> None: ...


class Reconstruct:
    """The image itself: mean |f(x) - x| over images and pixels. The bar is the per-pixel median image."""

    metric = "mae"
    constant_image = "the per-pixel median of the training images"

    def target(self, x_BCHW: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        return x_BCHW

    def score(self, answer: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.l1_loss(answer, target)

    def measure(
        self,
        predict: Predict,
        images: Images,
        rows: np.ndarray,
        chunk: int,
        device: torch.device,
        between: Callable[[], None],
    ) -> dict[str, float]:
        return {self.metric: mean_error(predict, images, rows, chunk, device, between)}

    def constant(
        self, images: Images, train_rows: np.ndarray, rows: np.ndarray, chunk: int, device: torch.device
    ) -> float:
        median_CHW = images.median(train_rows).to(device)
        return mean_error(lambda x_BCHW: median_CHW.expand_as(x_BCHW), images, rows, chunk, device)

    def refuse_collapse(self, taught: Taught, device: torch.device, report: Report) -> None:
        error, constant = taught.now.best_validation_error, taught.constant_error
        if error < constant:
            return
        remedy = _remedy(taught.now, "take a lower learning_rate, another seed, a linear head or more epochs")
        if constant > 0:
            raise Collapsed(
                f"the best epoch has a validation error of {error:.6g}, and one constant image "
                f"({self.constant_image}) has {constant:.6g}: the network tells no images apart; {remedy}",
                taught.products,
            )
        # No network beats an error of 0. Where there is one picture to learn, learning it is success.
        low, high = taught.lesson.images.range
        allowed = ALIKE * (high - low)
        if error > allowed:
            raise Collapsed(
                f"all images are the same one, and the network still misses it by {error:.6g}, more than {allowed:.6g} "
                f"(a hundredth of the range); {remedy}",
                taught.products,
            )
        report.note(
            "all images are the same one: the network learnt it, but a constant image would do as well, so this says "
            "nothing about what the network can tell apart"
        )


class ReconstructSquares(Reconstruct):
    """As the paper teaches the autoencoder of task-incremental learning: mean (f(x) - x)^2. The bar is the mean."""

    metric = "mse"
    constant_image = "the mean of the training images"

    def score(self, answer: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(answer, target)

    def measure(
        self,
        predict: Predict,
        images: Images,
        rows: np.ndarray,
        chunk: int,
        device: torch.device,
        between: Callable[[], None],
    ) -> dict[str, float]:
        return {self.metric: mean_error(predict, images, rows, chunk, device, between, mse_B)}

    def constant(
        self, images: Images, train_rows: np.ndarray, rows: np.ndarray, chunk: int, device: torch.device
    ) -> float:
        mean_CHW = images.mean(train_rows).to(device)
        return mean_error(lambda x_BCHW: mean_CHW.expand_as(x_BCHW), images, rows, chunk, device, error_B=mse_B)


@dataclass(frozen=True)
class Classify:
    """The label: cross-entropy, -log p of it. The bar is how frequent each class is among the training images."""

    labels_N: np.ndarray  # int64, of every image of the lesson
    span: tuple[int, int] | None = None  # first score and how many are told apart; None: all
    metric = "log_loss"

    def target(self, x_BCHW: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self.labels_N[rows]).to(x_BCHW.device, non_blocking=True)

    def score(self, answer: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.span is None:
            return F.cross_entropy(answer, target)
        first, count = self.span
        return F.cross_entropy(answer[:, first : first + count], target - first)

    def measure(
        self,
        predict: Predict,
        images: Images,
        rows: np.ndarray,
        chunk: int,
        device: torch.device,
        between: Callable[[], None],
    ) -> dict[str, float]:
        y_NK, labels = scores(predict, images, rows, chunk, device, between), self.labels_N[rows]
        if self.span is not None:
            first, count = self.span
            y_NK, labels = y_NK[:, first : first + count], labels - first
        return {self.metric: log_loss(y_NK, labels), "accuracy": accuracy(y_NK, labels)}

    def constant(
        self, images: Images, train_rows: np.ndarray, rows: np.ndarray, chunk: int, device: torch.device
    ) -> float:
        return constant_log_loss(self.labels_N[train_rows], self.labels_N[rows])

    def refuse_collapse(self, taught: Taught, device: torch.device, report: Report) -> None:
        lesson, rows = taught.lesson, taught.validation_rows
        measured = self.measure(taught.network, lesson.images, rows, taught.chunk, device, lambda: None)
        constant = constant_accuracy(self.labels_N[taught.train_rows], self.labels_N[rows])
        right = measured["accuracy"]
        # Where one class is nearly all there is, surer answers are something learnt though no answer changes.
        if right > constant or measured[self.metric] < SURER * taught.constant_error:
            return
        raise Collapsed(
            f"the best epoch answers {right:.1%} of the held-out images rightly, and who always answers with the most "
            f"frequent class {constant:.1%}: the network tells no images apart; "
            + _remedy(taught.now, "take a lower learning_rate, another seed or more epochs"),
            taught.products,
        )


def _remedy(now: Standing, otherwise: str) -> str:
    if now.best_epoch == now.epoch - 1 > 1:
        return "its error was still falling in the last epoch: give it more epochs first"
    return otherwise
