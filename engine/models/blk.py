"""`blk_{B}_fil_{F}`, the paper's autoencoder.

encoder: conv(c -> F), then B x [conv(F -> F), 2x max-pool], then conv(F -> F): its output is the latent.
decoder: conv(F -> F), then B x [nearest 2x, conv(F -> F)], then conv(F -> c), linear or through a sigmoid.

Every conv is 3x3 with bias and zero padding; an activation follows each one but the last. The six parameter counts of
the paper's architecture table leave no room for batch norm.

A decoder block never sees its enlarged image. After nearest 2x every pixel stands there four times, so of the nine
products of a 3x3 window some share a factor: summing their weights first leaves four. That is a transposed conv, 4x4
with stride 2, on the small image: the same function to rounding, its gradient flows back through the sums, and it takes
16 multiplications in place of 36. Zero padding agrees as well: a ring of zeros around the large image is half of one
around the small image.
"""

import torch
from torch import nn
from torch.nn import functional as F

from engine.models.layers import ACTIVATIONS, Autoencoder, conv, ended
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

# Along one side: which of the three taps of a conv meet in each of the four taps of the transposed conv.
MEETING_43 = torch.tensor([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def fold_upsampling(weight_OI33: torch.Tensor, meeting: torch.Tensor) -> torch.Tensor:
    """Weights of the transposed conv (IO44) that does what nearest 2x and this conv do. `meeting` is (16, 9)."""
    filters, channels = weight_OI33.shape[:2]
    taps_I9O = weight_OI33.permute(1, 2, 3, 0).reshape(channels, 9, filters)
    return (meeting @ taps_I9O).view(channels, 4, 4, filters).permute(0, 3, 1, 2)


class Encoder(nn.Module):
    def __init__(self, architecture: BlkArchitecture, channels: int, generator: torch.Generator | None) -> None:
        super().__init__()
        inner = architecture.filters
        self.stem = conv(channels, inner, generator)
        self.blocks = nn.ModuleList(conv(inner, inner, generator) for _ in range(architecture.blocks))
        self.latent = conv(inner, inner, generator)
        self.activation = ACTIVATIONS[architecture.activation]

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        return self.activation(self.latent(self.trunk(x_BCHW)))

    def trunk(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = self.activation(self.stem(x_BCHW))
        for block in self.blocks:
            # The activation is monotone, so it commutes with a maximum: after the pool it has a quarter of the work.
            h = self.activation(F.max_pool2d(block(h), 2))
        return h


class Decoder(nn.Module):
    def __init__(self, architecture: BlkArchitecture, channels: int, generator: torch.Generator | None) -> None:
        super().__init__()
        inner = architecture.filters
        self.stem = conv(inner, inner, generator)
        self.blocks = nn.ModuleList(conv(inner, inner, generator) for _ in range(architecture.blocks))
        self.head = conv(inner, channels, generator)
        self.activation = ACTIVATIONS[architecture.activation]
        self.end = architecture.head
        # Goes along to the device, and into no checkpoint.
        self.register_buffer("meeting", torch.kron(MEETING_43, MEETING_43), persistent=False)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        h = self.activation(self.stem(z))
        for block in self.blocks:
            folded = fold_upsampling(block.weight, self.meeting)
            h = self.activation(F.conv_transpose2d(h, folded, block.bias, stride=2, padding=1))
        return ended(self.head(h), self.end)


class BlkAutoencoder(Autoencoder):
    def __init__(
        self, architecture: BlkArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture, image.channels, generator)
        super().__init__(encoder, Decoder(architecture, image.channels, generator))


def multiplications(architecture: BlkArchitecture, image: ImageShape) -> int:
    """Of one image's pass, layer by layer as the paper draws them: the yardstick that no shortcut moves."""
    inner = architecture.filters
    pixels = image.height * image.width
    total = 2 * pixels * image.channels * inner  # stem and head
    for _ in range(architecture.blocks):
        total += 2 * pixels * inner * inner  # on the way down and on the way up
        pixels //= 4
    return 9 * (total + 2 * pixels * inner * inner)
