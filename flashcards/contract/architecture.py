"""Architectures by name, and the tensors each one is made of, without torch.

`blk_{B}_fil_{F}` is the paper's autoencoder: conv3x3(c->F); B x [conv3x3(F->F), 2x max-pool]; conv3x3(F->F), whose
output is the latent; conv3x3(F->F); B x [nearest 2x, conv3x3(F->F)]; conv3x3(F->c). Bias everywhere, no batch norm.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from flashcards.contract.base import Record
from flashcards.contract.image import ImageShape

TensorShape = tuple[int, ...]


class Architecture(Record):
    blocks: int = Field(ge=1, le=6)
    filters: int = Field(ge=1, le=512)
    activation: Literal["tanh", "relu"] = "tanh"
    head: Literal["linear", "sigmoid"] = "linear"

    @property
    def name(self) -> str:
        return f"blk_{self.blocks}_fil_{self.filters}"

    @property
    def stride(self) -> int:
        """How many input pixels lie under one latent position, along each side."""
        return int(2**self.blocks)

    def fits(self, image: ImageShape) -> bool:
        return image.height % self.stride == 0 and image.width % self.stride == 0

    def latent_shape(self, image: ImageShape) -> ImageShape:
        return ImageShape(image.height // self.stride, image.width // self.stride, self.filters)

    def tensors(self, channels: int) -> list[tuple[str, TensorShape]]:
        """Every tensor of the state dict, in order: what a checkpoint must hold, and nothing else."""
        inner = self.filters
        layers = [("encoder.stem", inner, channels)]
        layers += [(f"encoder.blocks.{block}", inner, inner) for block in range(self.blocks)]
        layers += [("encoder.latent", inner, inner), ("decoder.stem", inner, inner)]
        layers += [(f"decoder.blocks.{block}", inner, inner) for block in range(self.blocks)]
        layers += [("decoder.head", channels, inner)]
        return [
            tensor
            for layer, out_channels, in_channels in layers
            for tensor in (
                (f"{layer}.weight", (out_channels, in_channels, 3, 3)),
                (f"{layer}.bias", (out_channels,)),
            )
        ]

    def parameters(self, channels: int) -> int:
        total = 0
        for _, shape in self.tensors(channels):
            size = 1
            for side in shape:
                size *= side
            total += size
        return total


def parse_architecture(value: Any) -> Any:
    """A name such as `blk_4_fil_64` stands for the paper's network of that size."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"blk_(\d{1,2})_fil_(\d{1,4})", value)
    if not match:
        raise ValueError("name an architecture as blk_{blocks}_fil_{filters}, for example blk_4_fil_64")
    return {"blocks": int(match[1]), "filters": int(match[2])}


ArchitectureField = Annotated[
    Architecture,
    BeforeValidator(
        parse_architecture,
        json_schema_input_type=Architecture | Annotated[str, Field(pattern=r"^blk_\d{1,2}_fil_\d{1,4}$")],
    ),
]
