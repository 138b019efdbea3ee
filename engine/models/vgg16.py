"""`vgg16_{classes}`: thirteen convs with batch norm and relu, a 2x max-pool behind each of five groups, heads."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from engine.models.layers import Classifier, NormedConv
from flashcards.contract.architecture import VggArchitecture
from flashcards.contract.families.vgg16 import POOLED
from flashcards.contract.image import ImageShape


class Encoder(nn.Module):
    def __init__(self, architecture: VggArchitecture, image: ImageShape, generator: torch.Generator | None) -> None:
        super().__init__()
        channels = pairwise((image.channels, *architecture.widths))
        self.stages = nn.ModuleList(NormedConv(*pair, generator) for pair in channels)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = x_BCHW
        for place, stage in enumerate(self.stages):
            h = stage(h)
            # relu is monotone, so it commutes with a maximum: after the pool it has a quarter of the work.
            h = torch.relu_(F.max_pool2d(h, 2) if place in POOLED else h)
        return h.mean((2, 3))


class VggClassifier(Classifier):
    def __init__(
        self, architecture: VggArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture, image, generator)
        super().__init__(encoder, architecture.latent_units, architecture.heads, generator)
