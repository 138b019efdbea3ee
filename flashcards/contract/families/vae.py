"""`vae_{B}_fil_{F}`, the paper's autoencoder as a variational one.

As `blk_{B}_fil_{F}`, with a second conv3x3(F->F) beside the one that makes the latent: one gives the mean of a latent,
the other the logarithm of its variance. The mean has no activation behind it, since latents are to be normal deviates.
"""

import re
from typing import Any, Literal

from pydantic import Field

from flashcards.contract.families.base import Activation, AutoencoderFamily, Head, Tensors, conv
from flashcards.contract.families.blk import BlkArchitecture
from flashcards.contract.image import ImageShape

NAME = r"vae_\d{1,2}_fil_\d{1,4}"


class VaeArchitecture(AutoencoderFamily):
    """The paper's autoencoder, with latents that can be drawn."""

    family: Literal["vae"]
    blocks: int = Field(ge=1, le=6)
    filters: int = Field(ge=1, le=512)
    activation: Activation = "tanh"
    head: Head = "linear"

    @property
    def name(self) -> str:
        return f"vae_{self.blocks}_fil_{self.filters}"

    @property
    def without_variance(self) -> BlkArchitecture:
        return BlkArchitecture(blocks=self.blocks, filters=self.filters, activation=self.activation, head=self.head)

    def _misfit(self, image: ImageShape) -> str | None:
        words = self.without_variance.misfit(image)
        return words and words.replace(self.without_variance.name, self.name)

    def latent_shape(self, image: ImageShape) -> tuple[int, ...]:
        return self.without_variance.latent_shape(image)

    def widest(self, image: ImageShape) -> int:
        return self.without_variance.widest(image)

    def tensors(self, image: ImageShape) -> Tensors:
        plain = self.without_variance.tensors(image)
        place = [name for name, _ in plain].index("decoder.stem.weight")
        return [*plain[:place], *conv("encoder.log_variance", self.filters, self.filters), *plain[place:]]


def parse(name: str) -> dict[str, Any]:
    blocks, filters = re.findall(r"\d+", name)
    return {"family": "vae", "blocks": int(blocks), "filters": int(filters)}
