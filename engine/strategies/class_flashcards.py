"""`flashcards` of a classifier. Cards c come from the autoencoder g beside it, of each earlier task as many.

`soft_labels`, the paper's loss, with p the old answers over all old classes and z the latent:

    theta* = argmin CE(f(x), label) + lambda [ CE(f(c), p(c)) + mean (z(c) - z_old(c))^2 ]

Replay alone barely helps a classifier: new and old differ in more than their classes, one being images and the other
cards, and who tells all classes apart by gradient learns to tell images from cards. Cards are blurred, so that sharp
images of an old task are then taken for a new one.

`transplant` therefore gives every other card what g leaves out of a new image, c' = c + x - g(x): what is fine is then
as often old as new, and only what it lies on tells them apart. The old classifier answers these cards as well, and on
new images the classes of each earlier task are told apart as before, since cards say little of what is fine:

    theta* = argmin CE(f(x), label) + lambda [ CE(f(c'), p(c')) + mean (z(c') - z_old(c'))^2
                                             + sum_t T^2 CE(f(x) / T, p_T(x) | classes of task t) ],  T = 2

`local_distill` (after Smith et al., Always Be Dreaming, 2021) lets features learn each task by itself, and only heads
tell tasks apart:

    theta* = argmin CE(f(x), label | classes of the new task)
           + lambda [ sum_t CE(f(c), p(c) | classes of task t) + mean (W (z(c) - z_old(c)))^2 ]
           + CE(heads(stop z(x)), label) + CE(heads(stop z(c)), p(c))

W are the weights of the old heads, frozen: a change of the latent counts as far as it would change an old score. `stop`
lets no gradient through, so the last line moves the heads alone, over all classes, new and old in equal numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch.nn import functional as F

from engine.data import Images
from engine.resume import Standing
from engine.strategies.base import Strategy
from engine.strategies.distilling import distilled, padded
from engine.strategies.flashcards import count_of, ratio_of, save_sheet
from engine.strategies.lwf import TEMPERATURE
from engine.strategies.replay import Replay, derived_seed, shares
from engine.strategies.setting import Setting
from engine.task_cards import TaskCards, open_task_cards
from engine.work import Product
from flashcards.contract.strategies import Flashcards

Loss = tuple[torch.Tensor, torch.Tensor]  # what is descended, and the error that is told


class ClassFlashcards(Strategy):
    makes_cards = True
    ratio = 1.0  # where the config leaves it open; no other was measured

    def __init__(self, setting: Setting) -> None:
        config: Flashcards = setting.config
        self.setting, self.weight, self.fresh = setting, config.weight, config.fresh
        self.sources: list[TaskCards] = []
        self.of_recipe: Replay | None = None
        if setting.base is None:
            return
        if setting.maker is None:
            setting.report.note("no autoencoder was kept of the earlier tasks: nothing of them is replayed")
            return
        self.sources = self._open(config)
        self.recipes = [cards.recipe() for cards in self.sources]
        if self.sources:
            self.heads_KL = torch.cat([head.weight for head in setting.base.heads])
            self._make(epoch=0)
            self.of_recipe = self.replay

    def _open(self, config: Flashcards) -> list[TaskCards]:
        """Of the tasks that the autoencoder knows: those with a capsule, or all where latents come from none."""
        setting = self.setting
        from_capsules = config.source in ("auto", "capsule")
        known = [
            (number, task)
            for number, task in enumerate(setting.work.learner.tasks, start=1)
            if task.capsule is not None or not from_capsules
        ]
        missing = [name for name in setting.names if name not in [task.name for _, task in known]]
        if missing:
            setting.report.note(f"no capsule was kept of {', '.join(missing)}: nothing of that is replayed")
        seed, counts = setting.work.spec.seed, shares(count_of(config, setting), max(1, len(known)))
        return [
            open_task_cards(
                setting, task, count, derived_seed(seed, number), config.source, config.r, by_class=config.by_class
            )
            for (number, task), count in zip(known, counts, strict=False)
            if count
        ]

    def _cards(self, epoch: int) -> np.ndarray:
        return np.concatenate([cards.make(epoch) for cards in self.sources])

    def _make(self, epoch: int) -> None:
        """And what the old classifier says to them, and sees in them."""
        setting, spec = self.setting, self.setting.work.spec
        images = Images(self._cards(epoch), setting.images.range)
        self.replay = Replay(images, spec.seed, spec.batch_size, ratio_of(setting.config, self.ratio))
        with torch.no_grad():
            parts = []
            for first in range(0, len(images), setting.chunk):
                rows = np.arange(first, min(first + setting.chunk, len(images)))
                parts.append(setting.base.encoder(images.batch(rows, setting.device)))
                setting.between()
            self.z_NL = torch.cat(parts)
            self.y_NK = setting.base.read(self.z_NL)
            self.answers_NK = padded(torch.softmax(self.y_NK, dim=1), setting.classes.total)

    def begin_epoch(self, epoch: int) -> None:
        if self.replay is not None and self.fresh and epoch > 1:
            self._make(epoch - 1)
        super().begin_epoch(epoch)

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.replay is None:
            return super().loss(x_BCHW, target, now)
        rows = self.replay.rows(now.batch, len(x_BCHW))
        old_BCHW = self.replay.images.batch(rows, x_BCHW.device)
        return self.losses[self.kind](self, x_BCHW, target, old_BCHW, rows)

    @property
    def kind(self) -> str:
        """What `auto` stands for: sessions of the same classes have nothing that is new by its looks alone."""
        asked, classes = self.setting.config.loss, self.setting.classes
        if asked != "auto":
            return asked
        return "transplant" if classes.place.first >= classes.known else "soft_labels"

    def _soft_labels(
        self, x_BCHW: torch.Tensor, target: torch.Tensor, old_BCHW: torch.Tensor, rows: np.ndarray
    ) -> Loss:
        z_BL, y_BK, new = *self._answered(x_BCHW, old_BCHW), len(x_BCHW)
        error = self.score(y_BK[:new], target)
        drift = F.mse_loss(z_BL[new:], self.z_NL[rows])
        return error + self.weight * (self.score(y_BK[new:], self.answers_NK[rows]) + drift), error

    def _transplant(self, x_BCHW: torch.Tensor, target: torch.Tensor, old_BCHW: torch.Tensor, rows: np.ndarray) -> Loss:
        setting, new = self.setting, len(x_BCHW)
        with torch.no_grad():
            old_BCHW, was_BL = self._transplanted(x_BCHW, old_BCHW, self.z_NL[rows])
            answers_BK = padded(torch.softmax(setting.base.read(was_BL), dim=1), setting.classes.total)
            before_BK = setting.base(x_BCHW)
        z_BL, y_BK = self._answered(x_BCHW, old_BCHW)
        error = self.score(y_BK[:new], target)
        kept = self.score(y_BK[new:], answers_BK) + F.mse_loss(z_BL[new:], was_BL)
        held = distilled(y_BK[:new], before_BK, setting.classes.spans, TEMPERATURE)
        return error + self.weight * (kept + held), error

    def _transplanted(
        self, x_BCHW: torch.Tensor, old_BCHW: torch.Tensor, z_BL: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The cards, every other one with what is fine in a new image, and what the old classifier sees in them."""
        x_BCHW = x_BCHW[torch.arange(0, len(old_BCHW), 2, device=x_BCHW.device) % len(x_BCHW)]
        fine_BCHW = x_BCHW - self.setting.classes.autoencoder(x_BCHW)
        old_BCHW, z_BL = old_BCHW.clone(), z_BL.clone()
        old_BCHW[::2] = (old_BCHW[::2] + fine_BCHW).clamp(*self.setting.images.range)
        z_BL[::2] = self.setting.base.encoder(old_BCHW[::2])
        return old_BCHW, z_BL

    def _local_distill(
        self, x_BCHW: torch.Tensor, target: torch.Tensor, old_BCHW: torch.Tensor, rows: np.ndarray
    ) -> Loss:
        z_BL, y_BK, new = *self._answered(x_BCHW, old_BCHW), len(x_BCHW)
        classes = self.setting.classes
        first, count = classes.place.first, classes.place.classes
        error = F.cross_entropy(y_BK[:new, first : first + count], target - first)
        drift = ((z_BL[new:] - self.z_NL[rows]) @ self.heads_KL.T).square().mean()
        kept = distilled(y_BK[new:], self.y_NK[rows], classes.spans) + drift
        apart_BK = self.network.read(z_BL.detach())
        heads = self.score(apart_BK[:new], target) + self.score(apart_BK[new:], self.answers_NK[rows])
        return error + self.weight * kept + heads, error

    def _answered(self, x_BCHW: torch.Tensor, old_BCHW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """New and old in one pass: latents and scores."""
        z_BL = self.network.encoder(torch.cat([x_BCHW, old_BCHW]))
        return z_BL, self.network.read(z_BL)

    def products(self) -> Iterable[Product]:
        return () if self.of_recipe is None else [save_sheet(self.setting, self.of_recipe.images.x_NHWC)]

    losses = {"soft_labels": _soft_labels, "transplant": _transplant, "local_distill": _local_distill}
