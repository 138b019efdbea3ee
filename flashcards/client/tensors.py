"""Cards as the caller's framework wants them."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Cards = NDArray[np.float32] | NDArray[np.uint8]
Framework = Literal["numpy", "torch"]


def as_tensor(parts: Sequence[Cards], framework: Framework) -> Any:
    """The client needs no torch: it is taken from whoever asks for tensors."""
    if framework not in get_args(Framework):
        raise ValueError(f"cards come as numpy or torch, not as {framework!r}")
    cards = np.concatenate(parts)
    if framework == "numpy":
        return cards
    return import_module("torch").from_numpy(np.ascontiguousarray(np.moveaxis(cards, -1, 1)))
