"""`blk_{B}_fil_{F}`, the paper's autoencoder.

encoder: conv(c -> F), then B x [conv(F -> F), 2x max-pool], then conv(F -> F): its output is the latent.
decoder: conv(F -> F), then B x [nearest 2x, conv(F -> F)], then conv(F -> c), linear or through a sigmoid.

Every conv is 3x3 with bias and zero padding; an activation follows each one but the last. The six parameter counts of
the paper's architecture table leave no room for batch norm.
"""

import torch
from torch import nn
from torch.nn import functional as F

from engine.models.layers import ACTIVATIONS, Autoencoder, conv, ended
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape


class Encoder(nn.Module):
    def __init__(self, architecture: BlkArchitecture, channels: int, generator: torch.Generator | None) -> None:
        super().__init__()
        inner = architecture.filters
        self.stem = conv(channels, inner, generator)
        self.blocks = nn.ModuleList(conv(inner, inner, generator) for _ in range(architecture.blocks))
        self.latent = conv(inner, inner, generator)
        self.activation = ACTIVATIONS[architecture.activation]

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = self.activation(self.stem(x_BCHW))
        for block in self.blocks:
            # The activation is monotone, so it commutes with a maximum: after the pool it has a quarter of the work.
            h = self.activation(F.max_pool2d(block(h), 2))
        return self.activation(self.latent(h))


class Decoder(nn.Module):
    def __init__(self, architecture: BlkArchitecture, channels: int, generator: torch.Generator | None) -> None:
        super().__init__()
        inner = architecture.filters
        self.stem = conv(inner, inner, generator)
        self.blocks = nn.ModuleList(conv(inner, inner, generator) for _ in range(architecture.blocks))
        self.head = conv(inner, channels, generator)
        self.activation = ACTIVATIONS[architecture.activation]
        self.end = architecture.head

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        h = self.activation(self.stem(z))
        for block in self.blocks:
            h = self.activation(block(F.interpolate(h, scale_factor=2, mode="nearest")))
        return ended(self.head(h), self.end)


class BlkAutoencoder(Autoencoder):
    def __init__(
        self, architecture: BlkArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture, image.channels, generator)
        super().__init__(encoder, Decoder(architecture, image.channels, generator))
