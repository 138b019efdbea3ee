"""`dense_ae_{W1}_..._{L}`: linear layers down to a latent of L units, and their mirror.

encoder: flatten, for each width linear(-> W), activation; then linear(-> L).
decoder: for each width backwards linear(-> W), activation; then linear to the numbers of the image, or a sigmoid of it.
"""

from itertools import pairwise

import torch
from torch import nn

from engine.models.layers import ACTIVATIONS, Autoencoder, as_maps, ended, linear
from flashcards.contract.architecture import DenseArchitecture
from flashcards.contract.image import ImageShape


class Encoder(nn.Module):
    def __init__(self, architecture: DenseArchitecture, image: ImageShape, generator: torch.Generator | None) -> None:
        super().__init__()
        sizes = (image.pixels, *architecture.widths)
        self.layers = nn.ModuleList(linear(*pair, generator) for pair in pairwise(sizes))
        self.latent = linear(sizes[-1], architecture.latent, generator)
        self.activation = ACTIVATIONS[architecture.activation]

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = x_BCHW.flatten(1)
        for layer in self.layers:
            h = self.activation(layer(h))
        return self.latent(h)


class Decoder(nn.Module):
    def __init__(self, architecture: DenseArchitecture, image: ImageShape, generator: torch.Generator | None) -> None:
        super().__init__()
        sizes = (architecture.latent, *reversed(architecture.widths))
        self.layers = nn.ModuleList(linear(*pair, generator) for pair in pairwise(sizes))
        self.head = linear(sizes[-1], image.pixels, generator)
        self.activation = ACTIVATIONS[architecture.activation]
        self.end = architecture.head
        self.image = image

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        h = z
        for layer in self.layers:
            h = self.activation(layer(h))
        height, width, channels = self.image
        return as_maps(ended(self.head(h), self.end), channels, height, width)


class DenseAutoencoder(Autoencoder):
    def __init__(
        self, architecture: DenseArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture, image, generator)
        super().__init__(encoder, Decoder(architecture, image, generator))
