"""`lwf`, learning without forgetting (Li and Hoiem, 2016).

theta* = argmin mean |f(x) - x| + lambda mean |f(x) - f_old(x)|, from the old theta.

No old image is seen: on the new ones the network is also held to the answers that it gave before the task.
"""

import torch

from engine.resume import Standing
from engine.strategies.base import Strategy
from engine.strategies.setting import Setting
from flashcards.contract.strategies import Lwf


class LearningWithoutForgetting(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Lwf = setting.config
        self.setting, self.old, self.weight = setting, setting.base, config.weight

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.old is None:
            return super().loss(x_BCHW, target, now)
        seen_BCHW = self.seen(x_BCHW)
        y_BCHW, penalty = self.network.in_training(seen_BCHW, self.generator)
        with torch.no_grad():
            old_BCHW = self.old(seen_BCHW)
        error = self.score(y_BCHW, target)
        return error + self.weight * self.score(y_BCHW, old_BCHW) + penalty, error
