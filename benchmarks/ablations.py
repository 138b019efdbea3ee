"""Cards that start as latents, with a part of what is done to them left out: to see what each part is worth.

They are no sources of the product; `make reproduce-capture REPRODUCE="--only parts"` puts them beside those that are.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from engine import sources
from engine.gaussian import of_capsule
from engine.sources.latent import Decoding


class Decoded(Decoding):
    """c = D(z), and no step back."""

    def stepped_back(self, c_BCHW: torch.Tensor) -> torch.Tensor:
        return c_BCHW


class Toneless(Decoding):
    """The tones that the step back leaves."""

    def toned(self, tones_CQ: np.ndarray, chunk: int) -> Decoding:
        return self


class Bare(Decoded, Toneless):
    """Neither."""


#: How latents are decoded. In all of them those of a capsule are drawn from its Gaussian as it is.
ABLATIONS: dict[str, type[Decoding]] = {
    "narrow": Decoding,
    "decoded": Decoded,
    "toneless": Toneless,
    "bare": Bare,
}


@contextmanager
def in_place(name: str | None) -> Iterator[None]:
    """While it lasts, latents are drawn and decoded like this."""
    before = sources.Decoding, sources.around_capsule
    if name:
        sources.Decoding, sources.around_capsule = ABLATIONS[name], of_capsule
    try:
        yield
    finally:
        sources.Decoding, sources.around_capsule = before
