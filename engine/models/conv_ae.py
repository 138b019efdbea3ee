"""`conv_ae_{W1}_{W2}_...`: stages that halve the sides, and their mirror.

encoder: for each width conv(-> W), batch norm, activation; the conv has a stride of 2, or a 2x max-pool follows it.
decoder: for each width but the last, backwards, nearest 2x, conv(-> W), batch norm, activation; then nearest 2x and
conv(-> c), linear or through a sigmoid.
With `latent` the encoder ends in flatten, linear(-> latent), and the decoder begins with linear back, activation.

A batch norm averages over the batch while it learns, and keeps running averages, which it uses everywhere else: a
card does not depend on the cards it is made with.
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from engine.models.layers import ACTIVATIONS, Autoencoder, BatchNorm, as_maps, conv, ended, linear
from flashcards.contract.architecture import ConvArchitecture
from flashcards.contract.image import ImageShape


class Stage(nn.Module):
    def __init__(
        self,
        architecture: ConvArchitecture,
        inputs: int,
        outputs: int,
        generator: torch.Generator | None,
        halves: bool,
    ) -> None:
        super().__init__()
        self.pool = halves and architecture.down == "pool"
        self.conv = conv(inputs, outputs, generator, stride=2 if halves and not self.pool else 1)
        self.norm = BatchNorm(outputs) if architecture.norm == "batch" else nn.Identity()
        self.activation = ACTIVATIONS[architecture.activation]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.conv(x))
        # The activation is monotone, so it commutes with a maximum; a batch norm, whose weight may be negative, is not.
        return self.activation(F.max_pool2d(h, 2) if self.pool else h)


class Encoder(nn.Module):
    def __init__(self, architecture: ConvArchitecture, image: ImageShape, generator: torch.Generator | None) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            Stage(architecture, inputs, outputs, generator, halves=True)
            for inputs, outputs in pairwise((image.channels, *architecture.widths))
        )
        inner = architecture.map_shape(image).pixels
        self.latent = None if architecture.latent is None else linear(inner, architecture.latent, generator)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = x_BCHW
        for stage in self.stages:
            h = stage(h)
        return h if self.latent is None else self.latent(h.flatten(1))


class Decoder(nn.Module):
    def __init__(self, architecture: ConvArchitecture, image: ImageShape, generator: torch.Generator | None) -> None:
        super().__init__()
        self.map = architecture.map_shape(image)
        self.stem = None if architecture.latent is None else linear(architecture.latent, self.map.pixels, generator)
        self.stages = nn.ModuleList(
            Stage(architecture, inputs, outputs, generator, halves=False)
            for inputs, outputs in pairwise(reversed(architecture.widths))
        )
        self.head = conv(architecture.widths[0], image.channels, generator)
        self.activation = ACTIVATIONS[architecture.activation]
        self.end = architecture.head

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        h = z
        if self.stem is not None:
            height, width, channels = self.map
            h = as_maps(self.activation(self.stem(z)), channels, height, width)
        for layer in (*self.stages, self.head):
            h = layer(F.interpolate(h, scale_factor=2, mode="nearest"))
        return ended(h, self.end)


class ConvAutoencoder(Autoencoder):
    def __init__(
        self, architecture: ConvArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture, image, generator)
        super().__init__(encoder, Decoder(architecture, image, generator))
