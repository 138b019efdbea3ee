"""`si`, synaptic intelligence (Zenke et al., 2017).

theta* = argmin mean |f(x) - x| + lambda sum_k O_k (theta_k - theta_old,k)^2

O_k sums, over tasks, w_k / (D_k^2 + damping): w_k = - sum over steps of g_k * step_k is how much of the fall of the
error the weight brought about on its way, g being the gradient without the penalty, and D_k is how far it went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.resume import Training
from engine.strategies.base import Kept, Strategy
from engine.strategies.setting import Setting
from engine.strategies.springs import Springs, spring_state, under
from flashcards.contract.strategies import Si

if TYPE_CHECKING:
    from engine.lesson import Lesson

PATH, BEST = "path.", "best."


class SynapticIntelligence(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Si = setting.config
        self.setting, self.weight, self.damping = setting, config.weight, config.damping
        if setting.names and not setting.state:
            setting.report.note("no importances were kept of the earlier tasks: nothing holds their weights")

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.springs = Springs(training.network, self.setting.state, self.weight)
        self.names = [name for name, _ in training.network.named_parameters()]
        self.parameters = list(training.network.parameters())
        self.start = [parameter.detach().clone() for parameter in self.parameters]
        self.path = [torch.zeros_like(tensor) for tensor in self.start]
        self.best = [torch.zeros_like(tensor) for tensor in self.start]

    @torch.no_grad()
    def after_backward(self) -> None:
        self.gradients = [parameter.grad.clone() for parameter in self.parameters]
        self.before = [parameter.clone() for parameter in self.parameters]
        self.springs.pull()

    @torch.no_grad()
    def after_step(self) -> None:
        steps = torch._foreach_sub(self.parameters, self.before)
        torch._foreach_addcmul_(self.path, self.gradients, steps, value=-1)

    def keep_best(self) -> None:
        """The model will have the weights of this epoch, so it is the way up to here that counts."""
        self.best = [tensor.clone() for tensor in self.path]

    def tensors(self) -> dict[str, torch.Tensor]:
        kept = dict(zip((PATH + name for name in self.names), self.path, strict=True))
        return kept | dict(zip((BEST + name for name in self.names), self.best, strict=True))

    def take_up(self, tensors: dict[str, torch.Tensor]) -> None:
        path, best = under(PATH, tensors), under(BEST, tensors)
        self.path, self.best = [path[name] for name in self.names], [best[name] for name in self.names]

    def end(self, network: torch.nn.Module) -> Kept:
        importance = {}
        for (name, end), start, way in zip(network.named_parameters(), self.start, self.best, strict=True):
            importance[name] = way.clamp_min(0) / ((end - start).square() + self.damping)
        return Kept(state=spring_state(network, importance, self.setting.state))
