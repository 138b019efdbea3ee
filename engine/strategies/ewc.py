"""`ewc`, elastic weight consolidation (Kirkpatrick et al., 2017), online as in Schwarz et al., 2018.

theta* = argmin mean |f(x) - x| + lambda/2 sum_k F_k (theta_k - theta_old,k)^2

F_k is the Fisher information of a task, at its end and over its own images, summed over tasks. The error of an image,
e = mean |f(x) - x|, is taken for one observation of an exponential law of mean b, the error of all: its negative
log-likelihood is e / b, and b times that is what is descended. So F = b mean (d (e / b) / d theta)^2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

from engine.noise import seen_through
from engine.reference import evenly
from engine.resume import Training
from engine.strategies.base import Kept, Strategy
from engine.strategies.setting import Setting
from engine.strategies.springs import Springs, spring_state
from flashcards.contract.strategies import Ewc

if TYPE_CHECKING:
    from engine.lesson import Lesson

IMAGES = 512  # that the Fisher information is taken over, one gradient each


class ElasticWeights(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Ewc = setting.config
        self.setting, self.weight = setting, config.weight
        if setting.names and not setting.state:
            setting.report.note("no importances were kept of the earlier tasks: nothing holds their weights")

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.springs = Springs(training.network, self.setting.state, self.weight / 2)

    def after_backward(self) -> None:
        self.springs.pull()

    def end(self, network: torch.nn.Module) -> Kept:
        return Kept(state=spring_state(network, self._information(network), self.setting.state))

    def _information(self, network: torch.nn.Module) -> dict[str, torch.Tensor]:
        setting = self.setting
        rows = setting.train_rows[evenly(len(setting.train_rows), IMAGES)]
        network.requires_grad_(True)
        parameters = list(network.parameters())
        squares = [torch.zeros_like(parameter) for parameter in parameters]
        predict, total = seen_through(setting.noise, network), 0.0
        for row in rows:
            x_BCHW = setting.images.batch(row[None], setting.device)
            error = F.l1_loss(predict(x_BCHW), x_BCHW)
            torch._foreach_addcmul_(squares, *[torch.autograd.grad(error, parameters)] * 2)
            total += error.item()
            setting.between()
        network.requires_grad_(False)
        scale = 1 / max(total, 1e-12)  # 1 / b, and the mean over the images
        return {name: scale * square for (name, _), square in zip(network.named_parameters(), squares, strict=True)}
