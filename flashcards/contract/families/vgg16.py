"""`vgg16_{classes}`, the convs of VGG-16 (Simonyan and Zisserman, 2015) as they are built for images of 32x32.

encoder: thirteen conv3x3, each with batch norm and relu, of W, W, 2W, 2W, 4W x 3, 8W x 3 and 8W x 3 channels, with a 2x
max-pool behind each of these five groups; the mean over what is left of the sides (1x1 for 32x32) is the latent.

W is 64. The paper names VGG16 alone. The batch norm is ours: without it thirteen convs hardly begin to learn. The three
dense layers that images of 224x224 had behind the convs are one here, as is usual for small images.
"""

from itertools import pairwise
from typing import Literal

from pydantic import Field

from flashcards.contract.families.base import Tensors, batch_norm, conv
from flashcards.contract.families.classifier import HEADS, ClassifierFamily, parse
from flashcards.contract.image import ImageShape

__all__ = ["NAME", "VggArchitecture", "parse"]

NAME = rf"vgg16{HEADS}(_width_\d{{1,3}})?"
FACTORS = (1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 8, 8)  # of the width, conv by conv
POOLED = (1, 3, 6, 9, 12)  # convs with a pool behind them
SMALLEST = 2 ** len(POOLED)  # side of an image of which a pixel is left


class VggArchitecture(ClassifierFamily):
    """The convs of VGG-16 with batch norm, for small images."""

    family: Literal["vgg16"]
    width: int = Field(default=64, ge=1, le=128, description="channels of the first two convs")

    @property
    def name(self) -> str:
        return self._named("vgg16", width=self.width)

    @property
    def latent_units(self) -> int:
        return self.width * FACTORS[-1]

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(self.width * factor for factor in FACTORS)

    def _misfit(self, image: ImageShape) -> str | None:
        if min(image[:2]) >= SMALLEST:
            return None
        return (
            f"{self.name} halves an image {len(POOLED)} times: both sides must be at least {SMALLEST}, and those of "
            f"{image} are not; upload the images with input=32x32x{image.channels}, or take resnet18 or tasknet"
        )

    def widest(self, image: ImageShape) -> int:
        return image.height * image.width * max(self.width, image.channels)

    def _encoder(self, image: ImageShape) -> Tensors:
        found: Tensors = []
        for place, (inputs, outputs) in enumerate(pairwise((image.channels, *self.widths))):
            found += conv(f"encoder.stages.{place}.conv", outputs, inputs)
            found += batch_norm(f"encoder.stages.{place}.norm", outputs)
        return found
