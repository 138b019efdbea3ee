"""`tasknet_ae`: the encoder of a `tasknet`, and a decoder behind its latent.

decoder: linear(-> hidden), relu, linear(-> map), relu; conv(16W -> 8W), .. conv(2W -> W), each with batch norm and relu
before its sides grow back; conv(W -> c).
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from engine.models.layers import Autoencoder, NormedConv, as_maps, conv, ended, linear
from engine.models.tasknet import Encoder
from flashcards.contract.architecture import TasknetAeArchitecture
from flashcards.contract.image import ImageShape


class Decoder(nn.Module):
    def __init__(
        self, architecture: TasknetAeArchitecture, image: ImageShape, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        widths = architecture.encoder.widths
        self.map_shape = architecture.encoder.map_shape(image)
        self.hidden = linear(architecture.latent, architecture.hidden, generator)
        self.map = linear(architecture.hidden, self.map_shape.pixels, generator)
        self.stages = nn.ModuleList(NormedConv(*pair, generator) for pair in pairwise(reversed(widths)))
        self.head = conv(architecture.width, image.channels, generator)
        self.grown = architecture.sides(image)[1:]
        self.end = architecture.head

    def forward(self, z_BL: torch.Tensor) -> torch.Tensor:
        height, width, channels = self.map_shape
        h = as_maps(torch.relu_(self.map(torch.relu_(self.hidden(z_BL)))), channels, height, width)
        for stage, sides in zip(self.stages, self.grown, strict=True):
            h = F.interpolate(torch.relu_(stage(h)), size=sides, mode="nearest")
        return ended(self.head(h), self.end)


class TasknetAutoencoder(Autoencoder):
    def __init__(
        self, architecture: TasknetAeArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture.encoder, image, generator)
        super().__init__(encoder, Decoder(architecture, image, generator))
