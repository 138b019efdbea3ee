"""`tasknet_{classes}`, the paper's classifier of task-incremental learning, with one head a task.

encoder: five conv3x3 of W, 2W, 4W, 8W and 16W channels, each with batch norm and relu; the first keeps the sides, each
of the others halves them (an odd side is rounded up). Flatten, linear to 2000, relu, linear to the 128 of the latent.

The supplementary prints 16, 32, 64, 128 and 254 channels, and 1024 numbers behind the last of them for an image of
32x32: its map is 2x2, so 254 cannot be meant, and 256 is. The main text has the layer of 128 in place of that of 2000,
the supplementary one after the other: this follows the supplementary. The latent has no activation behind it, as that
of a decoder's counterpart and a Gaussian of latents want it.
"""

from itertools import pairwise
from math import prod
from typing import Literal

from pydantic import Field

from flashcards.contract.families.base import Tensors, batch_norm, conv, linear
from flashcards.contract.families.classifier import HEADS, ClassifierFamily, parse
from flashcards.contract.image import ImageShape

__all__ = ["NAME", "TasknetArchitecture", "parse"]

NAME = rf"tasknet{HEADS}(_width_\d{{1,3}})?(_hidden_\d{{1,4}})?(_latent_\d{{1,4}})?"
CONVS = 5


class TasknetArchitecture(ClassifierFamily):
    """The paper's classifier of task-incremental learning."""

    family: Literal["tasknet"]
    width: int = Field(default=16, ge=1, le=64, description="channels of the first conv; each next has twice as many")
    hidden: int = Field(default=2000, ge=1, le=4096, description="units of the layer before the latent")
    latent: int = Field(default=128, ge=1, le=4096)

    @property
    def name(self) -> str:
        return self._named("tasknet", width=self.width, hidden=self.hidden, latent=self.latent)

    @property
    def latent_units(self) -> int:
        return self.latent

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(self.width * 2**place for place in range(CONVS))

    def map_shape(self, image: ImageShape) -> ImageShape:
        """What the last conv hands on."""
        height, width = (-(-side // 2 ** (CONVS - 1)) for side in image[:2])
        return ImageShape(height, width, self.widths[-1])

    def _misfit(self, image: ImageShape) -> str | None:
        return None

    def widest(self, image: ImageShape) -> int:
        return max(
            image.height * image.width * max(self.width, image.channels), self.map_shape(image).pixels, self.hidden
        )

    def _encoder(self, image: ImageShape) -> Tensors:
        stages: Tensors = []
        for place, (inputs, outputs) in enumerate(pairwise((image.channels, *self.widths))):
            stages += conv(f"encoder.stages.{place}.conv", outputs, inputs)
            stages += batch_norm(f"encoder.stages.{place}.norm", outputs)
        flat = prod(self.map_shape(image))
        return [
            *stages,
            *linear("encoder.hidden", self.hidden, flat),
            *linear("encoder.latent", self.latent, self.hidden),
        ]
