"""`imm`, incremental moment matching (Lee et al., 2017): two networks become one, weight by weight.

The task is learnt from the old weights on, held near them: argmin CE(f(x), label) + lambda/2 |theta - theta_old|^2.
Then, theta_new being what came out at task n:

    mean:  theta = ((n - 1) theta_old + theta_new) / n
    mode:  theta = (F_old theta_old + F_new theta_new) / (F_old + F_new), weight by weight

F is the Fisher information, that of the earlier tasks summed. Heads of the new task have no old weights, and stay as
they were learnt. Running averages of a batch norm, which have no gradient, are merged as in `mean`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.resume import Training
from engine.strategies.base import Kept, Strategy
from engine.strategies.fisher import information
from engine.strategies.setting import Setting
from engine.strategies.springs import ANCHOR, STIFFNESS, Springs
from flashcards.contract.strategies import Imm

if TYPE_CHECKING:
    from engine.lesson import Lesson

LEAST = 1e-12  # where neither task says anything of a weight, both count alike


class MomentMatching(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Imm = setting.config
        self.setting, self.weight, self.by_mode = setting, config.weight, config.merge == "mode"
        self.old = {} if setting.base is None else setting.base.state_dict()
        if self.by_mode and self.old and not setting.state:
            setting.report.note("no importances were kept of the earlier tasks: they are merged by equal shares")

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.aim = lesson.aim
        ones = {STIFFNESS + name: torch.ones_like(tensor) for name, tensor in self.old.items()}
        anchors = {ANCHOR + name: tensor for name, tensor in self.old.items()}
        self.springs = Springs(training.network, ones | anchors, self.weight / 2)

    def after_backward(self) -> None:
        self.springs.pull()

    def merge(self, network: torch.nn.Module) -> dict[str, torch.Tensor] | None:
        self.information = information(self.setting, network, self.aim) if self.by_mode else {}
        if not self.old:
            return None
        state, earlier, number = self.setting.state, self.setting.number - 1, self.setting.number
        merged = {}
        for name, new in network.state_dict().items():
            old = self.old.get(name)
            if old is None or not new.is_floating_point():
                merged[name] = new.clone()
            elif name in self.information and name in state:
                was, now = state[name] + LEAST, self.information[name] + LEAST
                merged[name] = (was * old + now * new) / (was + now)
            else:
                merged[name] = (earlier * old + new) / number
        return merged

    def end(self, network: torch.nn.Module) -> Kept:
        before = self.setting.state
        return Kept(state={name: now + before.get(name, 0) for name, now in self.information.items()})
