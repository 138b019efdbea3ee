"""Fisher information of every weight, over the images of the task that was just learnt: how sure its value is.

F_k = mean over images of (d error / d theta_k)^2, for an error that is a negative log-likelihood, as cross-entropy is.
That of an autoencoder, e = mean |f(x) - x|, is one up to its scale b, the mean of all e (`ewc` says why): it is divided
by b.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.noise import seen_through
from engine.reference import evenly
from engine.strategies.setting import Setting

if TYPE_CHECKING:
    from engine.aims import Aim

IMAGES = 512  # that it is taken over, one gradient each


def information(setting: Setting, network: torch.nn.Module, aim: Aim) -> dict[str, torch.Tensor]:
    rows = setting.train_rows[evenly(len(setting.train_rows), IMAGES)]
    network.requires_grad_(True)
    parameters = list(network.parameters())
    squares = [torch.zeros_like(parameter) for parameter in parameters]
    predict, total = seen_through(setting.noise, network), 0.0
    for row in rows:
        x_BCHW = setting.images.batch(row[None], setting.device)
        error = aim.score(predict(x_BCHW), aim.target(x_BCHW, row[None]))
        torch._foreach_addcmul_(squares, *[torch.autograd.grad(error, parameters)] * 2)
        total += error.item()
        setting.between()
    network.requires_grad_(False)
    scale = 1 / len(rows) if setting.classes is not None else 1 / max(total, 1e-12)  # 1 / b, and the mean over images
    return {name: scale * square for (name, _), square in zip(network.named_parameters(), squares, strict=True)}
