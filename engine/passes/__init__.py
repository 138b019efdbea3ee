"""What runs a frozen network over and over: the same function on different machinery, one file each.

A backend keeps its name wherever its answers keep their last digits: the name goes into the recipe, and cards are
made again, or gone on with, by the backend that is named there.
"""

from typing import Protocol

import torch


class Passes(Protocol):
    name: str

    def __call__(self, x_BCHW: torch.Tensor) -> torch.Tensor: ...
