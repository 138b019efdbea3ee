"""What was tried to let cards keep more of a classifier: each a small change of `flashcards` of classes.

They are not strategies of the product: what helps on the mean of several seeds becomes part of it, the rest is here so
that it can be tried again. `make bench-classification BENCH="--bar losses"` prints them beside each other.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch.nn import functional as F

from engine import capsule, strategies
from engine.data import Images
from engine.lesson import Lesson
from engine.resume import Standing, Training
from engine.strategies.base import Kept, Strategy
from engine.strategies.class_flashcards import ClassFlashcards
from engine.strategies.distilling import distilled
from engine.strategies.lwf import TEMPERATURE
from engine.strategies.setting import Setting


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

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.weight *= max(1, len(self.sources))


class Held(ClassFlashcards):
    """The classes of each earlier task are also told apart on new images as before: cards are blurred, and so say
    nothing of what was seen in sharp images."""

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.replay is None:
            return super().loss(x_BCHW, target, now)
        rows, new = self.replay.rows(now.batch, len(x_BCHW)), len(x_BCHW)
        old_BCHW = self.replay.images.batch(rows, x_BCHW.device)
        z_BL = self.network.encoder(torch.cat([x_BCHW, old_BCHW]))
        y_BK = self.network.read(z_BL)
        with torch.no_grad():
            was_BK = self.setting.base(x_BCHW)
        error = self.score(y_BK[:new], target)
        drift = F.mse_loss(z_BL[new:], self.z_NL[rows])
        held = distilled(y_BK[:new], was_BK, self.setting.classes.spans, TEMPERATURE)
        kept = self.score(y_BK[new:], self.answers_NK[rows]) + drift + held
        return error + self.weight * kept + self.apart(z_BL, target, new), error

    def apart(self, z_BL: torch.Tensor, target: torch.Tensor, new: int) -> torch.Tensor | float:
        return 0.0


class Evenly(ClassFlashcards):
    """Tasks are told apart on blurred images alone: cards, and new images as the old autoencoder gives them back. On
    sharp ones the new classes are told apart among themselves, and the old ones as before: nothing learns that what is
    sharp is new."""

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.replay is None:
            return super().loss(x_BCHW, target, now)
        classes, new = self.setting.classes, len(x_BCHW)
        rows = self.replay.rows(now.batch, new)
        with torch.no_grad():
            maker, _ = self.setting.maker
            veiled_BCHW = maker(x_BCHW).clamp(*self.setting.images.range)
            was_BK = self.setting.base(x_BCHW)
        old_BCHW = self.replay.images.batch(rows, x_BCHW.device)
        z_BL = self.network.encoder(torch.cat([x_BCHW, veiled_BCHW, old_BCHW]))
        y_BK = self.network.read(z_BL)
        first, count = classes.place.first, classes.place.classes
        error = F.cross_entropy(y_BK[:new, first : first + count], target - first)
        apart = self.score(y_BK[new : 2 * new], target) + self.score(y_BK[2 * new :], self.answers_NK[rows])
        held = distilled(y_BK[:new], was_BK, classes.spans, TEMPERATURE)
        drift = F.mse_loss(z_BL[2 * new :], self.z_NL[rows])
        return error + apart + self.weight * (held + drift), error


class Remembered(Held):
    """And heads learn from latents drawn of every old class, as its images had them: mean and strongest directions of
    each were measured when they were there, and follow what the cards of the class say of how latents moved."""

    from_first = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        state = setting.state
        self.numbers = sorted({int(name.split(".")[1]) for name in state if name.startswith("moments.")})
        self.moments = {
            number: {each: state[f"moments.{number}.{each}"] for each in ("mean", "factor", "diagonal")}
            for number in self.numbers
        }

    def draw(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        z, labels = [], []
        for number in self.numbers:
            own, (first, classes) = self.moments[number], self.setting.classes.spans[number - 1]
            label_N = torch.randint(classes, (count // len(self.numbers),), generator=self.drawing)
            mean, factor = own["mean"][label_N], own["factor"][label_N]
            along = torch.einsum("nk,nkd->nd", torch.randn(factor.shape[:2], generator=self.drawing), factor)
            rest = torch.randn(mean.shape, generator=self.drawing) * own["diagonal"][label_N].sqrt()
            z.append(mean + along + rest)
            labels.append(label_N + first)
        return torch.cat(z), torch.cat(labels)

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.drawing = torch.Generator().manual_seed(self.setting.work.spec.seed)

    def apart(self, z_BL: torch.Tensor, target: torch.Tensor, new: int) -> torch.Tensor | float:
        if not self.numbers:
            return 0.0
        drawn_NL, labels_N = self.draw(2 * new)
        return F.cross_entropy(self.network.read(drawn_NL), labels_N)

    def end(self, network: torch.nn.Module) -> Kept:
        setting = self.setting
        classes, where = setting.classes, (setting.chunk, setting.device, setting.between)
        images = Images(setting.images.x_NHWC[setting.own_rows], setting.images.range)
        labels_N = classes.labels_N[setting.own_rows] - classes.place.first
        found = capsule.measure_classes(network, images, labels_N, classes.place.classes, *where)
        state = _as_state(setting.number, found.mean_CD, found.factor_CKD, found.diagonal_CD)
        if self.replay is not None:
            drift_NL, answer_N = self._drift(network)
            for number in self.numbers:
                own, (first, count) = self.moments[number], classes.spans[number - 1]
                mean = own["mean"].clone()
                for label in range(count):
                    of_class = answer_N == first + label
                    if of_class.any():
                        mean[label] += drift_NL[of_class].mean(0)
                state |= _as_state(number, mean, own["factor"], own["diagonal"])
        return Kept(state=state)

    @torch.inference_mode()
    def _drift(self, network: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        images, chunk = self.of_recipe.images, self.setting.chunk
        now = [
            network.encoder(images.batch(np.arange(first, min(first + chunk, len(images))), self.setting.device))
            for first in range(0, len(images), chunk)
        ]
        return torch.cat(now) - self.z_NL, self.y_NK.argmax(1)


def _as_state(number: int, *arrays: object) -> dict[str, torch.Tensor]:
    names = ("mean", "factor", "diagonal")
    return {
        f"moments.{number}.{name}": torch.as_tensor(array, dtype=torch.float32).contiguous()
        for name, array in zip(names, arrays, strict=True)
    }


@contextmanager
def in_place(trial: type[Strategy] | None) -> Iterator[None]:
    """While it lasts, `flashcards` of a classifier is the trial."""
    before = strategies.OF_CLASSES["flashcards"]
    strategies.OF_CLASSES["flashcards"] = trial or before
    try:
        yield
    finally:
        strategies.OF_CLASSES["flashcards"] = before
