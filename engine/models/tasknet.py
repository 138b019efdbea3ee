"""`tasknet_{classes}`: five convs that halve the sides from the second on, two linear layers, a head a task.

encoder: conv(c -> W), then conv(-> 2W), .. conv(-> 16W) of stride 2, each with batch norm and relu; flatten, linear(->
hidden), relu, linear(-> latent).
"""

from itertools import pairwise

import torch
from torch import nn

from engine.models.layers import Classifier, NormedConv, linear
from flashcards.contract.architecture import TasknetArchitecture
from flashcards.contract.image import ImageShape


class Encoder(nn.Module):
    def __init__(self, architecture: TasknetArchitecture, image: ImageShape, generator: torch.Generator | None) -> None:
        super().__init__()
        channels = pairwise((image.channels, *architecture.widths))
        self.stages = nn.ModuleList(
            NormedConv(*pair, generator, stride=2 if place else 1) for place, pair in enumerate(channels)
        )
        self.hidden = linear(architecture.map_shape(image).pixels, architecture.hidden, generator)
        self.latent = linear(architecture.hidden, architecture.latent, generator)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = x_BCHW
        for stage in self.stages:
            h = torch.relu_(stage(h))
        return self.latent(torch.relu_(self.hidden(h.flatten(1))))


class TasknetClassifier(Classifier):
    def __init__(
        self, architecture: TasknetArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture, image, generator)
        super().__init__(encoder, architecture.latent_units, architecture.heads, generator)
