"""`eeil`, end-to-end incremental learning (Castro et al., 2018).

theta* = argmin CE(f(x, e), label) + lambda sum_t T^2 CE(softmax(f(x, e)_{C_t} / T), softmax(f_old(x, e)_{C_t} / T))

over new images x and exemplars e of the earlier tasks together, C_t being the classes of task t. In the last epochs the
new images are as few as the exemplars of a class are, so that all classes are in balance, at a tenth of the learning
rate. Exemplars are chosen by herding, equally many a class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from engine.data import joined
from engine.resume import Standing, Training
from engine.strategies.base import Kept, Strategy
from engine.strategies.distilling import distilled
from engine.strategies.exemplars import herded
from engine.strategies.images_kept import as_arrays, labels_of, of_earlier
from engine.strategies.replay import Replay, derived_seed
from engine.strategies.setting import Setting
from flashcards.contract.strategies import Eeil

if TYPE_CHECKING:
    from engine.lesson import Lesson

SLOWER = 0.1
OWN_STREAM = 2**35  # of the order of the balanced end


class EndToEnd(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Eeil = setting.config
        self.setting, self.weight, self.temperature = setting, config.weight, config.temperature
        self.earlier = of_earlier(setting)
        self.labels = labels_of(setting, self.earlier)
        self.in_balance = False
        if self.earlier:
            spec = setting.work.spec
            images = joined(list(self.earlier.values()), setting.images.range)
            self.replay = Replay(images, spec.seed, spec.batch_size)
            self.answers_NK = torch.from_numpy(np.concatenate(list(self.labels.values()))).to(setting.device)
            self.balance = self._in_balance()

    def _in_balance(self) -> np.ndarray:
        """Rows of the new images: of each class as many as there are exemplars of a class."""
        setting = self.setting
        counts = np.bincount(self.answers_NK.cpu().numpy())
        each, labels_N = int(counts[counts > 0].mean()), setting.classes.labels_N
        rows = [
            setting.train_rows[labels_N[setting.train_rows] == label][: max(1, each)]
            for label in np.unique(labels_N[setting.train_rows])
        ]
        return np.concatenate(rows)

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.optimizer = training.optimizer

    def begin_epoch(self, epoch: int) -> None:
        super().begin_epoch(epoch)
        config, spec = self.setting.config, self.setting.work.spec
        self.in_balance = self.replay is not None and epoch > round(spec.epochs * (1 - config.balanced))
        if self.in_balance:
            few = Replay(self.setting.images, derived_seed(spec.seed, OWN_STREAM), spec.batch_size)
            few.begin_epoch(epoch, self.train_images)
            self.order = self.balance[few.order % len(self.balance)]

    def begin_step(self, rate: float) -> None:
        if self.in_balance:
            self.optimizer.param_groups[0]["lr"] = SLOWER * rate

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.replay is None:
            return super().loss(x_BCHW, target, now)
        device = x_BCHW.device
        if self.in_balance:
            first = now.batch * self.setting.work.spec.batch_size
            rows = self.order[first : first + len(x_BCHW)]
            x_BCHW = self.setting.images.batch(rows, device)
            target = torch.from_numpy(self.setting.classes.labels_N[rows]).to(device)
        rows = self.replay.rows(now.batch, len(x_BCHW))
        shown_BCHW = torch.cat([x_BCHW, self.replay.images.batch(rows, device)])
        y_BK = self.network(shown_BCHW)
        with torch.no_grad():
            old_BK = self.setting.base(shown_BCHW)
        error = self.score(y_BK[: len(x_BCHW)], target)
        kept = self.score(y_BK[len(x_BCHW) :], self.answers_NK[rows])
        held = distilled(y_BK, old_BK, self.setting.classes.spans, self.temperature)
        return error + kept + self.weight * held, error

    def end(self, network: torch.nn.Module) -> Kept:
        """Each class gets an equal share; the earliest exemplars of a class are its best."""
        setting = self.setting
        labels_N, rows = setting.classes.labels_N, setting.own_rows
        classes = {int(label) for labels in self.labels.values() for label in labels} | set(labels_N[rows].tolist())
        each = max(1, setting.config.size // len(classes))
        chosen = herded(setting, network, rows, labels_N, each)
        images, labels = self.earlier | {setting.number: setting.images.x_NHWC[chosen]}, dict(self.labels)
        labels[setting.number] = labels_N[chosen]
        fewer = {number: _first_of_each(labels[number], each) for number in images}
        kept = {number: images[number][fewer[number]] for number in images}
        return Kept(images=as_arrays(kept, {number: labels[number][fewer[number]] for number in images}))


def _first_of_each(labels_N: np.ndarray, most: int) -> np.ndarray:
    seen: dict[int, int] = {}
    rows = []
    for row, label in enumerate(labels_N.tolist()):
        seen[label] = seen.get(label, 0) + 1
        if seen[label] <= most:
            rows.append(row)
    return np.array(rows, dtype=np.intp)
