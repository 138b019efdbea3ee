"""`agem`, averaged gradient episodic memory (Chaudhry et al., 2019).

g is the gradient of the error on new images, r that on as many images kept of the earlier tasks. Where g r < 0 the step
would make those worse, and it is turned aside:

    g' = g - (g r / r r) r,  so that g' r = 0
"""

import numpy as np
import torch

from engine.data import joined, shuffled
from engine.resume import Standing
from engine.strategies.base import Kept, Strategy
from engine.strategies.images_kept import as_arrays, labels_of, of_earlier
from engine.strategies.replay import Replay, derived_seed, shares
from engine.strategies.setting import Setting
from flashcards.contract.strategies import Agem


def turned_aside(gradients: list[torch.Tensor], remembered: list[torch.Tensor]) -> list[torch.Tensor]:
    """g' of g and r, each given tensor by tensor."""
    along = sum((g * r).sum() for g, r in zip(gradients, remembered, strict=True))
    length = sum(r.square().sum() for r in remembered)
    if along >= 0 or length == 0:
        return gradients
    share = along / length
    return [g - share * r for g, r in zip(gradients, remembered, strict=True)]


class AveragedGradients(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: Agem = setting.config
        self.setting, self.size = setting, config.size
        self.earlier = of_earlier(setting)
        self.labels = labels_of(setting, self.earlier)
        if self.earlier:
            spec = setting.work.spec
            images = joined(list(self.earlier.values()), setting.images.range)
            self.replay = Replay(images, spec.seed, spec.batch_size)
            self.answers_NK = torch.from_numpy(np.concatenate(list(self.labels.values()))).to(setting.device)

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        self.number, self.count = now.batch, len(x_BCHW)
        error = self.score(self.network(x_BCHW), target)
        return error, error

    def after_backward(self) -> None:
        if self.replay is None:
            return
        rows = self.replay.rows(self.number, self.count)
        parameters = list(self.network.parameters())
        y_BK = self.network(self.replay.images.batch(rows, parameters[0].device))
        remembered = torch.autograd.grad(self.score(y_BK, self.answers_NK[rows]), parameters)
        turned = turned_aside([parameter.grad for parameter in parameters], list(remembered))
        for parameter, gradient in zip(parameters, turned, strict=True):
            parameter.grad = gradient

    def end(self, network: torch.nn.Module) -> Kept:
        """Every task gets an equal share, at random."""
        setting = self.setting
        seed = derived_seed(setting.work.spec.seed, setting.number)
        rows = setting.own_rows[shuffled(len(setting.own_rows), seed, 0)]
        images = self.earlier | {setting.number: setting.images.x_NHWC[rows]}
        labels = self.labels | {setting.number: setting.classes.labels_N[rows]}
        counts = dict(zip(images, shares(self.size, len(images)), strict=True))
        return Kept(images=as_arrays({number: x[: counts[number]] for number, x in images.items()}, labels))
