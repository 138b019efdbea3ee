"""`blk_{B}_fil_{F}`, the paper's autoencoder.

conv3x3(c->F); B x [conv3x3(F->F), 2x max-pool]; conv3x3(F->F), whose output is the latent; conv3x3(F->F);
B x [nearest 2x, conv3x3(F->F)]; conv3x3(F->c). Bias everywhere, no batch norm.
"""

import re
from typing import Any, Literal

from pydantic import Field

from flashcards.contract.families.base import Activation, AutoencoderFamily, Head, Tensors, conv, unhalved
from flashcards.contract.image import ImageShape

NAME = r"blk_\d{1,2}_fil_\d{1,4}"


class BlkArchitecture(AutoencoderFamily):
    """The paper's autoencoder."""

    family: Literal["blk"] = "blk"
    blocks: int = Field(ge=1, le=6)
    filters: int = Field(ge=1, le=512)
    activation: Activation = "tanh"
    head: Head = "linear"

    @property
    def name(self) -> str:
        return f"blk_{self.blocks}_fil_{self.filters}"

    def _misfit(self, image: ImageShape) -> str | None:
        return unhalved(self.name, self.blocks, image)

    def latent_shape(self, image: ImageShape) -> tuple[int, ...]:
        stride = 2**self.blocks
        return image.height // stride, image.width // stride, self.filters

    def widest(self, image: ImageShape) -> int:
        return image.height * image.width * max(self.filters, image.channels)

    def tensors(self, image: ImageShape) -> Tensors:
        inner = self.filters
        return [
            *conv("encoder.stem", inner, image.channels),
            *(each for block in range(self.blocks) for each in conv(f"encoder.blocks.{block}", inner, inner)),
            *conv("encoder.latent", inner, inner),
            *conv("decoder.stem", inner, inner),
            *(each for block in range(self.blocks) for each in conv(f"decoder.blocks.{block}", inner, inner)),
            *conv("decoder.head", image.channels, inner),
        ]


def parse(name: str) -> dict[str, Any]:
    blocks, filters = re.findall(r"\d+", name)
    return {"family": "blk", "blocks": int(blocks), "filters": int(filters)}
