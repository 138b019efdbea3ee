"""`dense_ae_{W1}_..._{L}`, an autoencoder of linear layers, for vectors and tables and for small images.

encoder: flatten, then linear and activation for each width, then linear to the L units of the latent.
decoder: the same widths backwards, then linear to as many numbers as the image has, in its shape.

A vector of D numbers is an image of 1xDx1. An image is flattened channel by channel, row by row.
"""

import re
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field

from flashcards.contract.families.base import Activation, AutoencoderFamily, Head, Tensors, linear
from flashcards.contract.image import ImageShape

Width = Annotated[int, Field(ge=1, le=4096)]
#: The last number is the latent; a word stands for what differs from the default, always in this order.
NAME = r"dense_ae(_\d{1,4}){1,9}(_tanh)?(_sigmoid)?"


class DenseArchitecture(AutoencoderFamily):
    """An autoencoder of linear layers, for vectors and tables."""

    family: Literal["dense_ae"]
    widths: tuple[Width, ...] = Field(max_length=8, description="units of each layer before the latent")
    latent: Width
    activation: Activation = "relu"
    head: Head = "linear"

    @property
    def name(self) -> str:
        words = ["tanh"] if self.activation == "tanh" else []
        words += ["sigmoid"] if self.head == "sigmoid" else []
        return "_".join(["dense_ae", *map(str, self.widths), str(self.latent), *words])

    def _misfit(self, image: ImageShape) -> str | None:
        return None

    def latent_shape(self, image: ImageShape) -> tuple[int, ...]:
        return (self.latent,)

    def widest(self, image: ImageShape) -> int:
        return max(image.pixels, *self.widths, self.latent)

    def tensors(self, image: ImageShape) -> Tensors:
        down = list(pairwise((image.pixels, *self.widths)))
        up = list(pairwise((self.latent, *reversed(self.widths))))
        last = (*self.widths, self.latent)
        return [
            *(each for layer, (i, o) in enumerate(down) for each in linear(f"encoder.layers.{layer}", o, i)),
            *linear("encoder.latent", self.latent, (image.pixels, *self.widths)[-1]),
            *(each for layer, (i, o) in enumerate(up) for each in linear(f"decoder.layers.{layer}", o, i)),
            *linear("decoder.head", image.pixels, last[0]),
        ]


def parse(name: str) -> dict[str, Any]:
    *widths, latent = (int(size) for size in re.findall(r"\d+", name))
    words = {"tanh": "activation", "sigmoid": "head"}
    spec = {"family": "dense_ae", "widths": widths, "latent": latent}
    return spec | {field: word for word, field in words.items() if f"_{word}" in name}
