"""Pixel values, brought to the distribution that the data had: a background that was black becomes black again.

A decoder never quite reaches the ends: where two thirds of all pixels were 0, those of its images lie a little above,
and who learns from them learns a grey that no image has. The capsule knows the quantiles of the data, a channel at a
time (its tones); those of cards are taken from a few hundred of them, always the same ones, so that card i stays a
function of its number. In between the map is linear; values that are equal stay equal.
"""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Tones:
    """For each channel: at these values of a card (ascending), the data has those."""

    card: list[torch.Tensor]
    data: list[torch.Tensor]

    def match(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        matched = [
            _interpolated(x_BCHW[:, channel], card, data)
            for channel, (card, data) in enumerate(zip(self.card, self.data, strict=True))
        ]
        return torch.stack(matched, dim=1).contiguous(memory_format=torch.channels_last)


def tones_between(x_NCHW: torch.Tensor, tones_CQ: np.ndarray) -> Tones:
    """From what these cards have to what the data had."""
    many = tones_CQ.shape[1]
    places = (np.arange(many) + 0.5) / many
    card, data = [], []
    for channel, wanted_Q in enumerate(tones_CQ):
        found_Q = np.quantile(x_NCHW[:, channel].cpu().numpy().ravel(), places)
        # Where many pixels have one value they get one value: the middle of what the data has at their places.
        values, which = np.unique(found_Q, return_inverse=True)
        middles = np.bincount(which, wanted_Q) / np.bincount(which)
        for side, numbers in ((card, values), (data, middles)):
            side.append(torch.from_numpy(numbers.astype(np.float32)).to(x_NCHW.device))
    return Tones(card, data)


def _interpolated(x: torch.Tensor, at_Q: torch.Tensor, value_Q: torch.Tensor) -> torch.Tensor:
    if len(at_Q) == 1:
        return value_Q.expand_as(x)
    right = torch.searchsorted(at_Q, x.contiguous()).clamp(1, len(at_Q) - 1)
    share = ((x - at_Q[right - 1]) / (at_Q[right] - at_Q[right - 1])).clamp(0, 1)
    return torch.lerp(value_Q[right - 1], value_Q[right], share)
