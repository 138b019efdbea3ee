"""`coreset`: some images of every task are kept, and replayed as cards are.

theta* = argmin mean |f(x) - x| + lambda mean |f(c) - c|, c being the images that were kept.

Of a classifier: cross-entropy on x + lambda cross-entropy on c, whose labels are kept as well.
"""

import numpy as np
import torch

from engine.data import joined, shuffled
from engine.strategies.base import Kept, Strategy
from engine.strategies.images_kept import as_arrays, labels_of, of_earlier
from engine.strategies.replay import Replay, derived_seed, shares
from engine.strategies.setting import Setting
from flashcards.contract.strategies import Coreset

SEEN = "seen"  # images of each task that could have been kept: what a reservoir has to know


class CoresetReplay(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Coreset = setting.config
        self.setting, self.weight = setting, config.weight
        self.earlier = of_earlier(setting)
        self.labels = labels_of(setting, self.earlier)
        if self.labels:
            self.answers_NK = torch.from_numpy(np.concatenate(list(self.labels.values()))).to(setting.device)
        if self.earlier:
            spec = setting.work.spec
            images = joined(list(self.earlier.values()), setting.images.range)
            self.replay = Replay(images, spec.seed, spec.batch_size)

    def end(self, network: torch.nn.Module) -> Kept:
        """Every array lies in random order, so that its beginning is a fair choice of it."""
        setting, config = self.setting, self.setting.config
        seed = derived_seed(setting.work.spec.seed, setting.number)
        rows = setting.own_rows[shuffled(len(setting.own_rows), seed, 0)]
        new = setting.images.x_NHWC[rows]
        labels = self.labels
        if setting.classes is not None:
            labels = labels | {setting.number: setting.classes.labels_N[rows]}
        every = self.earlier | {setting.number: new}
        seen = self._seen(len(new))
        if config.choice == "per_task":
            counts = dict(zip(every, shares(config.size, len(every)), strict=True))
        else:
            counts = self._reservoir(config.size, {n: seen[n - 1] for n in every}, seed)
        kept = {number: array[: counts[number]] for number, array in every.items()}
        return Kept(images=as_arrays(kept, labels) | {SEEN: np.array(seen)})

    def _seen(self, new: int) -> list[int]:
        known = self.setting.kept_images.get(SEEN)
        earlier = range(1, self.setting.number)
        if known is not None and len(known) == len(earlier):
            return [*map(int, known), new]
        return [*(len(self.earlier.get(number, ())) for number in earlier), new]

    def _reservoir(self, size: int, seen: dict[int, int], seed: int) -> dict[int, int]:
        """How many of each task a reservoir of this size would hold, had all images passed by one after the other.

        Of n seen it holds a fair choice of k. Of old and new together the new get a hypergeometric share, and the old
        ones give up theirs by lot.
        """
        chance = np.random.Generator(np.random.Philox(key=[seed, 1]))
        held = {number: len(array) for number, array in self.earlier.items()}
        new, number = seen[self.setting.number], self.setting.number
        total = sum(seen.values())
        room = min(size, total)
        drawn = int(chance.hypergeometric(new, total - new, room)) if total > new else min(new, room)
        drawn = max(drawn, room - sum(held.values()))
        if not held:
            return {number: drawn}
        left = chance.multivariate_hypergeometric(list(held.values()), min(room - drawn, sum(held.values())))
        return dict(zip(held, map(int, left), strict=True)) | {number: drawn}
