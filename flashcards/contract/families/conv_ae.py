"""`conv_ae_{W1}_{W2}_...`, a convolutional autoencoder of one stage a width, each of which halves the sides.

encoder: a stage is conv3x3, batch norm, activation, with a stride of 2 in the conv or a 2x max-pool behind it.
decoder: the same widths backwards, nearest 2x before each conv3x3; the last conv gives the channels of the image.
With `latent` there is a dense bottleneck between the two: flatten, linear to `latent` units; linear back, activation.
"""

import re
from itertools import pairwise
from math import prod
from typing import Annotated, Any, Literal

from pydantic import Field

from flashcards.contract.families.base import (
    Activation,
    AutoencoderFamily,
    Head,
    Tensors,
    batch_norm,
    conv,
    linear,
    unhalved,
)
from flashcards.contract.image import ImageShape

Width = Annotated[int, Field(ge=1, le=512)]
#: A word stands for what differs from the default, always in this order.
NAME = r"conv_ae(_\d{1,3}){1,6}(_latent_\d{1,4})?(_tanh)?(_plain)?(_pool)?(_sigmoid)?"


class ConvArchitecture(AutoencoderFamily):
    """A convolutional autoencoder, by the widths of its stages."""

    family: Literal["conv_ae"]
    widths: tuple[Width, ...] = Field(
        min_length=1, max_length=6, description="channels of each stage; every stage halves the sides"
    )
    activation: Activation = "relu"
    norm: Literal["batch", "none"] = Field(default="batch", description="behind every conv but the last")
    down: Literal["stride", "pool"] = Field(default="stride", description="how a stage halves the sides")
    head: Head = "linear"
    latent: int | None = Field(default=None, ge=1, le=4096, description="units of a dense bottleneck; null: none")

    @property
    def name(self) -> str:
        words = [f"latent_{self.latent}"] if self.latent is not None else []
        words += ["tanh"] if self.activation == "tanh" else []
        words += ["plain"] if self.norm == "none" else []
        words += ["pool"] if self.down == "pool" else []
        words += ["sigmoid"] if self.head == "sigmoid" else []
        return "_".join(["conv_ae", *map(str, self.widths), *words])

    def map_shape(self, image: ImageShape) -> ImageShape:
        """What the last stage of the encoder hands on."""
        stride = 2 ** len(self.widths)
        return ImageShape(image.height // stride, image.width // stride, self.widths[-1])

    def _misfit(self, image: ImageShape) -> str | None:
        words = unhalved(self.name, len(self.widths), image)
        vector = words is not None and image.height == 1
        return f"{words}; for vectors there is dense_ae" if vector else words

    def latent_shape(self, image: ImageShape) -> tuple[int, ...]:
        return self.map_shape(image) if self.latent is None else (self.latent,)

    def widest(self, image: ImageShape) -> int:
        # The decoder has each width at the sides before its stage, a quarter as many pixels with every stage.
        maps = [width >> (2 * stage) for stage, width in enumerate(self.widths)]
        return image.height * image.width * max(*maps, image.channels)

    def tensors(self, image: ImageShape) -> Tensors:
        down = list(pairwise((image.channels, *self.widths)))
        up = list(pairwise(reversed(self.widths)))
        inner = self.map_shape(image)
        return [
            *(each for stage, pair in enumerate(down) for each in self._stage(f"encoder.stages.{stage}", *pair)),
            *(linear("encoder.latent", self.latent, prod(inner)) if self.latent is not None else []),
            *(linear("decoder.stem", prod(inner), self.latent) if self.latent is not None else []),
            *(each for stage, pair in enumerate(up) for each in self._stage(f"decoder.stages.{stage}", *pair)),
            *conv("decoder.head", image.channels, self.widths[0]),
        ]

    def _stage(self, name: str, inputs: int, outputs: int) -> Tensors:
        norm = batch_norm(f"{name}.norm", outputs) if self.norm == "batch" else []
        return [*conv(f"{name}.conv", outputs, inputs), *norm]


def parse(name: str) -> dict[str, Any]:
    sizes, *latent = name.split("_latent_")
    spec: dict[str, Any] = {"family": "conv_ae", "widths": [int(width) for width in re.findall(r"\d+", sizes)]}
    if latent:
        spec["latent"] = int(latent[0].split("_")[0])
    words = {"tanh": "activation", "pool": "down", "sigmoid": "head"}
    spec |= {field: word for word, field in words.items() if f"_{word}" in name}
    return spec | ({"norm": "none"} if "_plain" in name else {})
