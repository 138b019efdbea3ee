"""What was tried to give the new task more room while cards keep the old ones: each a small change of `flashcards`.

They are not strategies of the product: what helps on the mean of several seeds becomes part of it, the rest is here so
that it can be tried again. `make bench-continual BENCH="--bar plasticity"` prints them beside each other.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch.nn import functional as F

from engine import capsule, strategies
from engine.data import Images
from engine.lesson import Lesson
from engine.measures import mae_B
from engine.resume import Standing, Training
from engine.strategies.base import Strategy
from engine.strategies.flashcards import FlashcardsReplay
from engine.strategies.replay import derived_seed, shares
from engine.task_cards import TaskCards, as_batches, open_task_cards
from flashcards.contract.strategies import Flashcards


def done(strategy: FlashcardsReplay, now: Standing) -> float:
    """How much of the training lies behind the step to come."""
    spec = strategy.setting.work.spec
    batches = -(-strategy.train_images // spec.batch_size)
    return (now.epoch - 1 + now.batch / batches) / spec.epochs


class Scheduled(FlashcardsReplay):
    """lambda moves in a straight line over the training; lambda of the config is its larger end."""

    first, last = 0.1, 1.0

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        moved = (self.last - self.first) * done(self, now)
        self.weight = self.setting.config.weight * (self.first + moved)
        return super().loss(x_BCHW, target, now)


class Rising(Scheduled):
    """The new task first, then what it did to the old ones is mended."""


class Falling(Scheduled):
    first, last = 1.0, 0.1


class SlowStart(FlashcardsReplay):
    """The learning rate rises over the first fifth of the training: Adam knows nothing at first, and steps widely."""

    share = 0.2

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.training = training

    def begin_step(self, rate: float) -> None:
        if self.replay is not None:
            slowed = rate * min(1.0, done(self, self.training.now) / self.share)
            self.training.optimizer.param_groups[0]["lr"] = slowed


class Trusted(FlashcardsReplay):
    """Twice as many cards are made; the half that the old network gives back best (P1) is replayed."""

    def _open(self, config: Flashcards) -> list[TaskCards]:
        return super()._open(config.model_copy(update={"count": 2 * config.count}))

    def _make(self, epoch: int) -> None:
        setting = self.setting
        kept = [self._best_half(cards.make(epoch)) for cards in self.sources]
        self.replay = self._beside(Images(np.concatenate(kept), setting.images.range))

    def _best_half(self, cards_NHWC: np.ndarray) -> np.ndarray:
        base, parts = self.setting.base, as_batches(cards_NHWC, self.setting.chunk, self.setting.device)
        with torch.inference_mode():
            error_N = torch.cat([mae_B(x_BCHW, base(x_BCHW)) for x_BCHW in parts])
        best = error_N.argsort()[: len(cards_NHWC) // 2].sort().values
        return cards_NHWC[best.cpu().numpy()]


class LatentsHeld(FlashcardsReplay):
    """The new encoder is also held to what the old one says of the cards."""

    pull = 0.1

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        loss, error = super().loss(x_BCHW, target, now)
        if self.replay is None:
            return loss, error
        old_BCHW = self.shown_BCHW[len(x_BCHW) :]
        with torch.no_grad():
            held = self.setting.base.encoder(old_BCHW)
        return loss + self.pull * F.l1_loss(self.network.encoder(old_BCHW), held), error


class MixedSources(FlashcardsReplay):
    """A quarter of the cards of each task starts from mazes (r = 10), the rest from its capsule."""

    def _open(self, config: Flashcards) -> list[TaskCards]:
        quarter = config.count // 4
        ours = super()._open(config.model_copy(update={"count": config.count - quarter}))
        tasks, setting = self.setting.work.learner.tasks, self.setting
        counts, seed = shares(quarter, len(tasks)), setting.work.spec.seed
        return ours + [
            open_task_cards(setting, task, count, derived_seed(seed, 1000 + number), "maze", 10)
            for number, (task, count) in enumerate(zip(tasks, counts, strict=True))
            if count
        ]


class ChannelsMatched(FlashcardsReplay):
    """The cards of a task get the mean and the deviation of each channel that its capsule tells of its images."""

    def _make(self, epoch: int) -> None:
        setting, parts = self.setting, []
        for cards in self.sources:
            x_NHWC, kept = cards.make(epoch), capsule.load(cards.model)
            if kept is not None:
                mean_C, deviation_C = x_NHWC.mean((0, 1, 2)), x_NHWC.std((0, 1, 2))
                x_NHWC = (x_NHWC - mean_C) / np.maximum(
                    deviation_C, 1e-6
                ) * kept.facts.channel_deviation + kept.facts.channel_mean
            parts.append(np.clip(x_NHWC, *setting.images.range).astype(np.float32))
        self.replay = self._beside(Images(np.concatenate(parts), setting.images.range))


class MomentsMatched(FlashcardsReplay):
    """A few steps on the cards themselves, until the old encoder gives each batch of them the mean and the deviation
    that the capsule tells of the task's latents."""

    steps, rate, batch = 5, 0.01, 250

    def _make(self, epoch: int) -> None:
        parts = [self._matched(cards, cards.make(epoch)) for cards in self.sources]
        self.replay = self._beside(Images(np.concatenate(parts), self.setting.images.range))

    def _matched(self, cards: TaskCards, x_NHWC: np.ndarray) -> np.ndarray:
        kept = capsule.load(cards.model)
        if kept is None:
            return x_NHWC
        moments = (kept.mean_D, np.sqrt(np.diagonal(kept.covariance()).clip(0)))
        mean_D, deviation_D = (torch.as_tensor(each, dtype=torch.float32) for each in moments)
        moved = [
            self._moved(x_BCHW, mean_D.to(x_BCHW.device), deviation_D.to(x_BCHW.device))
            for x_BCHW in as_batches(x_NHWC, self.batch, self.setting.device)
        ]
        return np.ascontiguousarray(torch.cat(moved).permute(0, 2, 3, 1).cpu().numpy())

    def _moved(self, x_BCHW: torch.Tensor, mean_D: torch.Tensor, deviation_D: torch.Tensor) -> torch.Tensor:
        x_BCHW = x_BCHW.clone().requires_grad_(True)
        optimizer = torch.optim.Adam([x_BCHW], lr=self.rate)
        for _ in range(self.steps):
            z_BD = self.setting.base.encoder(x_BCHW).flatten(1)
            spread_D = (z_BD.var(0, correction=0) + 1e-8).sqrt()  # the root of 0 has no slope
            loss = F.mse_loss(z_BD.mean(0), mean_D) + F.mse_loss(spread_D, deviation_D)
            (x_BCHW.grad,) = torch.autograd.grad(loss, [x_BCHW])
            optimizer.step()
            self.setting.between()
        return x_BCHW.detach().clamp(*self.setting.images.range)


@contextmanager
def in_place(trial: type[Strategy] | None) -> Iterator[None]:
    """While it lasts, `flashcards` is the trial."""
    before = strategies.STRATEGIES["flashcards"]
    strategies.STRATEGIES["flashcards"] = trial or before
    try:
        yield
    finally:
        strategies.STRATEGIES["flashcards"] = before
