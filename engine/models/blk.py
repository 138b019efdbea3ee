"""`blk_{B}_fil_{F}`, the paper's autoencoder.

encoder: conv(c -> F), then B x [conv(F -> F), 2x max-pool], then conv(F -> F): its output is the latent.
decoder: conv(F -> F), then B x [nearest 2x, conv(F -> F)], then conv(F -> c), linear or through a sigmoid.

Every conv is 3x3 with bias and zero padding; an activation follows each one but the last. The six parameter counts of
the paper's architecture table leave no room for batch norm.

Memory format: a batch comes in as channels last, and every layer hands that format on, which makes a pass faster on a
CPU. The weights stay as they are in a checkpoint: oneDNN packs them for itself, and plain
strides keep the optimizer's state and the files simple.

A decoder block never sees its enlarged image. After nearest 2x every pixel stands there four times, so of the nine
products of a 3x3 window some share a factor: summing their weights first leaves four. That is a transposed conv, 4x4
with stride 2, on the small image: the same function to rounding, its gradient flows back through the sums, and it takes
16 multiplications in place of 36. Zero padding agrees as well: a ring of zeros around the large image is half of one
around the small image.
"""

import torch
from torch import nn
from torch.nn import functional as F

from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape

# In place: a conv's backward pass does not look at its output, and tanh and relu look only at their own.
ACTIVATIONS = {"tanh": torch.tanh_, "relu": torch.relu_}
CHUNK = 64  # images a forward pass, where nothing else says how many
WIDEST_MAP = 2**29  # bytes of the widest feature map of a chunk; only images beyond 128x128 come near it

# Along one side: which of the three taps of a conv meet in each of the four taps of the transposed conv.
MEETING_43 = torch.tensor([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def _conv(in_channels: int, out_channels: int, generator: torch.Generator | None) -> nn.Conv2d:
    conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
    # PyTorch's own init, with a sigmoid head and an L1 loss, was seen to end in a black image.
    nn.init.xavier_uniform_(conv.weight, generator=generator)
    nn.init.zeros_(conv.bias)
    return conv


def fold_upsampling(weight_OI33: torch.Tensor, meeting: torch.Tensor) -> torch.Tensor:
    """Weights of the transposed conv (IO44) that does what nearest 2x and this conv do. `meeting` is (16, 9)."""
    filters, channels = weight_OI33.shape[:2]
    taps_I9O = weight_OI33.permute(1, 2, 3, 0).reshape(channels, 9, filters)
    return (meeting @ taps_I9O).view(channels, 4, 4, filters).permute(0, 3, 1, 2)


class Encoder(nn.Module):
    def __init__(self, architecture: Architecture, channels: int, generator: torch.Generator | None) -> None:
        super().__init__()
        inner = architecture.filters
        self.stem = _conv(channels, inner, generator)
        self.blocks = nn.ModuleList(_conv(inner, inner, generator) for _ in range(architecture.blocks))
        self.latent = _conv(inner, inner, generator)
        self.activation = ACTIVATIONS[architecture.activation]

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = self.activation(self.stem(x_BCHW))
        for conv in self.blocks:
            # The activation is monotone, so it commutes with a maximum: after the pool it has a quarter of the work.
            h = self.activation(F.max_pool2d(conv(h), 2))
        return self.activation(self.latent(h))


class Decoder(nn.Module):
    def __init__(self, architecture: Architecture, channels: int, generator: torch.Generator | None) -> None:
        super().__init__()
        inner = architecture.filters
        self.stem = _conv(inner, inner, generator)
        self.blocks = nn.ModuleList(_conv(inner, inner, generator) for _ in range(architecture.blocks))
        self.head = _conv(inner, channels, generator)
        self.activation = ACTIVATIONS[architecture.activation]
        self.sigmoid = architecture.head == "sigmoid"
        # Goes along to the device, and into no checkpoint.
        self.register_buffer("meeting", torch.kron(MEETING_43, MEETING_43), persistent=False)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        h = self.activation(self.stem(z))
        for conv in self.blocks:
            folded = fold_upsampling(conv.weight, self.meeting)
            h = self.activation(F.conv_transpose2d(h, folded, conv.bias, stride=2, padding=1))
        y_BCHW = self.head(h)
        return torch.sigmoid(y_BCHW) if self.sigmoid else y_BCHW


class BlkAutoencoder(nn.Module):
    def __init__(self, architecture: Architecture, channels: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.encoder = Encoder(architecture, channels, generator)
        self.decoder = Decoder(architecture, channels, generator)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x_BCHW))


def chunk_size(architecture: Architecture, image: ImageShape) -> int:
    """How many images go through at once: 64, or the power of two below it that keeps large images in memory."""
    # While its maze is drawn an image takes about as much memory as 16 channels of it.
    bytes_an_image = 4 * image.height * image.width * max(architecture.filters, image.channels, 16)
    chunk = CHUNK
    while chunk > 1 and chunk * bytes_an_image > WIDEST_MAP:
        chunk //= 2
    return chunk


def multiplications(architecture: Architecture, image: ImageShape) -> int:
    """Of one image's pass, layer by layer as the paper draws them: the yardstick that no shortcut moves."""
    inner = architecture.filters
    pixels = image.height * image.width
    total = 2 * pixels * image.channels * inner  # stem and head
    for _ in range(architecture.blocks):
        total += 2 * pixels * inner * inner  # on the way down and on the way up
        pixels //= 4
    return 9 * (total + 2 * pixels * inner * inner)
