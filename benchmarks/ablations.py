"""Cards that start as latents, with a part of what is done to them left out: to see what each part is worth.

They are no sources of the product; `make reproduce-capture REPRODUCE="--only parts"` puts them beside those that are.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from engine import sources
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


ABLATIONS: dict[str, type[Decoding]] = {"decoded": Decoded, "toneless": Toneless, "bare": Bare}


@contextmanager
def in_place(name: str | None) -> Iterator[None]:
    """While it lasts, latents are decoded like this."""
    sources.Decoding = ABLATIONS[name] if name else Decoding
    try:
        yield
    finally:
        sources.Decoding = Decoding
