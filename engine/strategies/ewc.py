"""`ewc`, elastic weight consolidation (Kirkpatrick et al., 2017), online as in Schwarz et al., 2018.

theta* = argmin mean |f(x) - x| + lambda/2 sum_k F_k (theta_k - theta_old,k)^2

F_k is the Fisher information of a task, at its end and over its own images, summed over tasks. The error of an image,
e = mean |f(x) - x|, is taken for one observation of an exponential law of mean b, the error of all: its negative
log-likelihood is e / b, and b times that is what is descended. So F = b mean (d (e / b) / d theta)^2.

Of a classifier the error of an image is its negative log-likelihood already, -log p of its label among the classes of
its task: F = mean (d log p / d theta)^2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.resume import Training
from engine.strategies.base import Kept, Strategy
from engine.strategies.fisher import information
from engine.strategies.setting import Setting
from engine.strategies.springs import Springs, spring_state
from flashcards.contract.strategies import Ewc

if TYPE_CHECKING:
    from engine.lesson import Lesson


class ElasticWeights(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Ewc = setting.config
        self.setting, self.weight = setting, config.weight
        if setting.names and not setting.state:
            setting.report.note("no importances were kept of the earlier tasks: nothing holds their weights")

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.springs = Springs(training.network, self.setting.state, self.weight / 2)
        self.aim = lesson.aim

    def after_backward(self) -> None:
        self.springs.pull()

    def end(self, network: torch.nn.Module) -> Kept:
        return Kept(state=spring_state(network, information(self.setting, network, self.aim), self.setting.state))
