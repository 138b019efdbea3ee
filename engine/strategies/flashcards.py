"""`flashcards`, Algorithm 2 of the paper: theta* = argmin mean |f(x) - x| + lambda mean |f(c) - c|, from the old theta.

x are the new images, c cards that the network of the base version made of itself: equally many for each earlier task,
started from the capsule of that task where there is one. The paper has as many cards as images in a batch; twice as
many say with less noise what is to be kept, and both old and new are learnt better (docs/reproduction-continual.md).

In denoising the paper adds noise to the images of all tasks and says nothing of cards. Cards are made as ever, by
passes without noise, and are the clean side of a pair: they are shown with noise, as the images they stand for are.
"""

import math
from collections.abc import Iterable

import numpy as np

from engine import pictures
from engine.data import Images
from engine.files import write_whole
from engine.strategies.base import Strategy
from engine.strategies.replay import Replay, derived_seed, shares
from engine.strategies.setting import Setting
from engine.task_cards import TaskCards, open_task_cards
from engine.work import Product
from flashcards.contract.strategies import Flashcards

CARDS = Product("cards.png", "image/png")


def save_sheet(setting: Setting, x_NHWC: np.ndarray) -> Product:
    """Cards lie task by task: shown are some of each."""
    some = np.linspace(0, len(x_NHWC) - 1, min(len(x_NHWC), pictures.SHEET_CARDS)).astype(int)
    pixels = pictures.to_pixels(x_NHWC[some], setting.images.range)
    write_whole(setting.work.out / CARDS.name, pictures.sheet(pixels))
    return CARDS


def count_of(config: Flashcards, setting: Setting) -> int:
    """Cards in all; of a share at least one for each earlier task."""
    if config.share is None:
        return config.count
    return max(len(setting.names), math.ceil(config.share * len(setting.own_rows)))


def ratio_of(config: Flashcards, auto: float) -> float:
    return auto if config.ratio == "auto" else config.ratio


class FlashcardsReplay(Strategy):
    ratio = 2.0  # where the config leaves it open

    def __init__(self, setting: Setting) -> None:
        config: Flashcards = setting.config
        self.setting, self.weight, self.fresh = setting, config.weight, config.fresh
        if setting.base is None:
            return
        self.sources = self._open(config)
        self.recipes = [cards.recipe() for cards in self.sources]
        self._make(epoch=0)

    def _open(self, config: Flashcards) -> list[TaskCards]:
        setting = self.setting
        counts = shares(count_of(config, setting), len(setting.names))
        seed = setting.work.spec.seed
        return [
            open_task_cards(setting, task, count, derived_seed(seed, number), config.source, config.r)
            for number, (task, count) in enumerate(zip(setting.work.learner.tasks, counts, strict=True), start=1)
            if count
        ]

    def _make(self, epoch: int) -> None:
        """Epoch 0: those that serve for the whole training."""
        setting = self.setting
        cards_NHWC = np.concatenate([cards.make(epoch) for cards in self.sources])
        self.replay = self._beside(Images(cards_NHWC, setting.images.range))

    def _beside(self, cards: Images) -> Replay:
        spec = self.setting.work.spec
        return Replay(cards, spec.seed, spec.batch_size, ratio_of(self.setting.config, self.ratio))

    def begin_epoch(self, epoch: int) -> None:
        if self.replay is not None and self.fresh and epoch > 1:
            self._make(epoch - 1)
        super().begin_epoch(epoch)

    def products(self) -> Iterable[Product]:
        return () if self.replay is None else [save_sheet(self.setting, self.replay.images.x_NHWC)]
