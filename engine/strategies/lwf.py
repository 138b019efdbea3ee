"""`lwf`, learning without forgetting (Li and Hoiem, 2016).

theta* = argmin mean |f(x) - x| + lambda mean |f(x) - f_old(x)|, from the old theta.

No old image is seen: on the new ones the network is also held to the answers that it gave before the task.

Of a classifier, of whose earlier tasks each has the classes C_t:

theta* = argmin CE(f(x), label) + lambda sum_t T^2 CE(softmax(f(x)_{C_t} / T), softmax(f_old(x)_{C_t} / T)),  T = 2.
"""

import torch

from engine.resume import Standing
from engine.strategies.base import Strategy
from engine.strategies.distilling import distilled
from engine.strategies.setting import Setting
from flashcards.contract.strategies import Lwf

TEMPERATURE = 2.0  # as in the paper of the strategy


class LearningWithoutForgetting(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Lwf = setting.config
        self.setting, self.old, self.weight = setting, setting.base, config.weight

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.old is None:
            return super().loss(x_BCHW, target, now)
        seen_BCHW = self.seen(x_BCHW)
        y, penalty = self.network.in_training(seen_BCHW, self.generator)
        with torch.no_grad():
            old = self.old(seen_BCHW)
        error = self.score(y, target)
        classes = self.setting.classes
        held = self.score(y, old) if classes is None else distilled(y, old, classes.spans, TEMPERATURE)
        return error + self.weight * held + penalty, error
