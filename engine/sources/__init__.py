"""P(M): where cards start. A source is a function of (seed, card number) and of nothing else."""

from collections.abc import Callable

import numpy as np

from engine.sources.maze import mazes
from flashcards.contract.image import ImageShape

Patterns = Callable[[int, int, int, ImageShape, tuple[float, float]], np.ndarray]
"""(seed, first card, how many, image, range) -> x_NHWC"""

SOURCES: dict[str, Patterns] = {"maze": mazes}
AUTO = "maze"  # the paper's choice: it did better there than noise and than geometric patterns


def resolve(source: str) -> str:
    return AUTO if source == "auto" else source
