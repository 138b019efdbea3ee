"""What the families are built of.

Memory format: a batch comes in as channels last, and every layer hands that format on, which makes a pass faster on a
CPU. The weights stay as they are in a checkpoint: oneDNN packs them for itself, and plain
strides keep the optimizer's state and the files simple.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

# In place: a conv's backward pass does not look at its output, and tanh and relu look only at their own.
ACTIVATIONS = {"tanh": torch.tanh_, "relu": torch.relu_}


class Autoencoder(nn.Module):
    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x_BCHW))

    def in_training(
        self, x_BCHW: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor | float]:
        """The answer that is scored while it learns, and what is added to the score. Families may draw from here."""
        return self(x_BCHW), 0.0


class Classifier(nn.Module):
    """An encoder that makes z_BL of images, and linear heads: the answer is y_BK, a score a class of every head."""

    def __init__(
        self, encoder: nn.Module, latent: int, heads: Sequence[int], generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleList(linear(latent, classes, generator) for classes in heads)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        return self.read(self.encoder(x_BCHW))

    def read(self, z_BL: torch.Tensor) -> torch.Tensor:
        return torch.cat([head(z_BL) for head in self.heads], dim=1)

    def in_training(self, x_BCHW: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, float]:
        return self(x_BCHW), 0.0


def conv(
    in_channels: int,
    out_channels: int,
    generator: torch.Generator | None,
    stride: int = 1,
    side: int = 3,
    bias: bool = True,
) -> nn.Conv2d:
    return _begun(nn.Conv2d(in_channels, out_channels, side, stride, padding=side // 2, bias=bias), generator)


def linear(inputs: int, outputs: int, generator: torch.Generator | None) -> nn.Linear:
    return _begun(nn.Linear(inputs, outputs), generator)


def _begun(layer: nn.Module, generator: torch.Generator | None) -> nn.Module:
    # PyTorch's own init, with a sigmoid head and an L1 loss, was seen to end in a black image.
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class BatchNorm(nn.BatchNorm2d):
    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        # One number a channel has no spread. It happens where the last batch is a single image and its map one pixel.
        if self.training and x_BCHW.numel() == x_BCHW.shape[1]:
            return F.batch_norm(x_BCHW, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x_BCHW)


class NormedConv(nn.Module):
    """conv, batch norm; what follows is the caller's."""

    def __init__(
        self, in_channels: int, out_channels: int, generator: torch.Generator | None, **options: int | bool
    ) -> None:
        super().__init__()
        self.conv = conv(in_channels, out_channels, generator, **options)
        self.norm = BatchNorm(out_channels)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x_BCHW))


def ended(y: torch.Tensor, head: str) -> torch.Tensor:
    return torch.sigmoid(y) if head == "sigmoid" else y


def as_maps(flat_BN: torch.Tensor, channels: int, height: int, width: int) -> torch.Tensor:
    return flat_BN.view(-1, channels, height, width).contiguous(memory_format=torch.channels_last)
