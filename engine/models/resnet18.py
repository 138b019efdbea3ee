"""`resnet18_{classes}`: a stem, eight blocks with a way around each, the mean over places, heads."""

import torch
from torch import nn

from engine.models.layers import BatchNorm, Classifier, NormedConv, conv
from flashcards.contract.architecture import ResnetArchitecture
from flashcards.contract.image import ImageShape


class Block(nn.Module):
    """relu(norm(conv(relu(norm(conv(x))))) + s(x)): s leaves x as it is, or brings it to the shape of the rest."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator | None) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.conv1 = conv(inputs, outputs, generator, stride=stride, bias=False)
        self.norm1 = BatchNorm(outputs)
        self.conv2 = conv(outputs, outputs, generator, bias=False)
        self.norm2 = BatchNorm(outputs)
        same = inputs == outputs
        self.shortcut = None if same else NormedConv(inputs, outputs, generator, stride=stride, side=1, bias=False)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = torch.relu_(self.norm1(self.conv1(x_BCHW)))
        h = self.norm2(self.conv2(h))
        return torch.relu_(h + (x_BCHW if self.shortcut is None else self.shortcut(x_BCHW)))


class Encoder(nn.Module):
    def __init__(self, architecture: ResnetArchitecture, image: ImageShape, generator: torch.Generator | None) -> None:
        super().__init__()
        self.stem = NormedConv(image.channels, architecture.width, generator, bias=False)
        self.blocks = nn.ModuleList(Block(*pair, generator) for pair in architecture.blocks)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        h = torch.relu_(self.stem(x_BCHW))
        for block in self.blocks:
            h = block(h)
        return h.mean((2, 3))


class ResnetClassifier(Classifier):
    def __init__(
        self, architecture: ResnetArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture, image, generator)
        super().__init__(encoder, architecture.latent_units, architecture.heads, generator)
