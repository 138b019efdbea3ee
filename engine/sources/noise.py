"""Pixel noise: every value of every pixel is a normal deviate around the middle of the range, on its own.

The paper tried it and found that it does not capture representations: there is no shape in it for the network to hold
on to. It is here to be compared with.
"""

import numpy as np

from engine.hashing import keys, normals
from flashcards.contract.image import ImageShape

NOISE_VERSION = 1  # changes when the same seed would give other patterns
DEVIATION = 0.25  # of the range: one value in twenty meets an end and is cut off there


def noise(seed: int, first: int, count: int, image: ImageShape, range: tuple[float, float]) -> np.ndarray:
    """Cards number first .. first + count - 1 as x_NHWC, float32 in the range."""
    low, high = range
    drawn = normals(keys(seed, first, count), lane=1, size=image.pixels)
    values = np.clip((low + high) / 2 + DEVIATION * (high - low) * drawn, low, high)
    return values.reshape(count, *image).astype(np.float32)
