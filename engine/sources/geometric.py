"""Geometric patterns: discs, boxes and stripes in random colours, one over the other, on a random ground.

The paper names geometric patterns as the runner-up of mazes and says no more of them. Ours has 3 to 6 shapes a card,
each with a place, a size, a tilt and a colour of its own; what lies on top covers what lies below.
"""

import numpy as np

from engine.hashing import keys, uniforms
from flashcards.contract.image import ImageShape

GEOMETRIC_VERSION = 1  # changes when the same seed would give other patterns
FEWEST, MOST = 3, 6  # shapes a card
DRAWN = 7  # numbers that a shape draws beside its colour


def geometric(seed: int, first: int, count: int, image: ImageShape, range: tuple[float, float]) -> np.ndarray:
    """Cards number first .. first + count - 1 as x_NHWC, float32 in the range."""
    height, width, channels = image
    key_N = keys(seed, first, count)
    side = min(height, width)
    y = np.arange(height)[None, :, None] + 0.5
    x = np.arange(width)[None, None, :] + 0.5

    ground_NC = uniforms(key_N, 0, channels + 1)
    shapes_N = FEWEST + np.floor(ground_NC[:, -1] * (MOST - FEWEST + 1))
    cards_NHWC = np.broadcast_to(ground_NC[:, None, None, :-1], (count, *image)).astype(np.float32)
    for number in np.arange(MOST):
        drawn = uniforms(key_N, 1 + int(number), DRAWN + channels)
        centre_y, centre_x, size, aspect, tilt, kind, period = (drawn[:, k, None, None] for k in np.arange(DRAWN))
        size = side * (0.1 + 0.3 * size)  # half of its length
        angle = np.pi * tilt
        dy, dx = y - height * centre_y, x - width * centre_x
        along, across = dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)
        disc = along**2 + (across / (0.4 + 0.6 * aspect)) ** 2 < size**2
        box = (np.abs(along) < size) & (np.abs(across) < size * (0.2 + 0.8 * aspect))
        stripes = disc & (np.floor(along / np.maximum(1.0, side * (0.05 + 0.1 * period))) % 2 == 0)
        inside = np.where(kind < 0.4, disc, np.where(kind < 0.8, box, stripes)) & (number < shapes_N[:, None, None])
        cards_NHWC = np.where(inside[..., None], drawn[:, None, None, DRAWN:].astype(np.float32), cards_NHWC)
    low, high = range
    return np.ascontiguousarray(low + (high - low) * cards_NHWC, dtype=np.float32)
