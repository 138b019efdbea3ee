"""`resnet18_{classes}`, ResNet-18 (He et al., 2016) as it is built for images of 32x32.

encoder: conv3x3(c -> W), batch norm, relu; eight blocks of W, W, 2W, 2W, 4W, 4W, 8W, 8W channels, of which the third,
fifth and seventh halve the sides; the mean over what is left of them is the latent. The stem of the network for
224x224, a conv7x7 of stride 2 and a pool, would leave too little of a small image.

A block: conv3x3, batch norm, relu, conv3x3, batch norm, plus its input (through a conv1x1 and batch norm where the
shape changes), relu. Convs have no bias.

W is 64. Tensors come in the order in which torch's own builders list them, so that a `.pt` of such a network is taken.
"""

from itertools import pairwise
from typing import Literal

from pydantic import Field

from flashcards.contract.families.base import Tensors, bare_conv, batch_norm
from flashcards.contract.families.classifier import HEADS, ClassifierFamily, parse
from flashcards.contract.image import ImageShape

__all__ = ["NAME", "ResnetArchitecture", "parse"]

NAME = rf"resnet18{HEADS}(_width_\d{{1,3}})?"
FACTORS = (1, 1, 2, 2, 4, 4, 8, 8)  # of the width, block by block


class ResnetArchitecture(ClassifierFamily):
    """ResNet-18 for small images."""

    family: Literal["resnet18"]
    width: int = Field(default=64, ge=1, le=128, description="channels of the first four convs")

    @property
    def name(self) -> str:
        return self._named("resnet18", width=self.width)

    @property
    def latent_units(self) -> int:
        return self.width * FACTORS[-1]

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Channels in and out; where they differ, and not at the first, the sides are halved."""
        return list(pairwise(self.width * factor for factor in (1, *FACTORS)))

    def _misfit(self, image: ImageShape) -> str | None:
        return None

    def widest(self, image: ImageShape) -> int:
        # A halving of odd sides rounds up, so a row of pixels may have more numbers in a later map.
        sides, found = list(image[:2]), image.pixels
        for inputs, outputs in self.blocks:
            sides = [-(-side // 2) for side in sides] if outputs != inputs else sides
            found = max(found, sides[0] * sides[1] * outputs)
        return found

    def _encoder(self, image: ImageShape) -> Tensors:
        found = [
            *bare_conv("encoder.stem.conv", self.width, image.channels),
            *batch_norm("encoder.stem.norm", self.width),
        ]
        for place, (inputs, outputs) in enumerate(self.blocks):
            block = f"encoder.blocks.{place}"
            found += [*bare_conv(f"{block}.conv1", outputs, inputs), *batch_norm(f"{block}.norm1", outputs)]
            found += [*bare_conv(f"{block}.conv2", outputs, outputs), *batch_norm(f"{block}.norm2", outputs)]
            if outputs != inputs:
                found += bare_conv(f"{block}.shortcut.conv", outputs, inputs, side=1)
                found += batch_norm(f"{block}.shortcut.norm", outputs)
        return found
