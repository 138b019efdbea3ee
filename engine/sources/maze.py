"""Mazes: corridors and walls in two random colours of full contrast, the paper's P(M).

No maze is built. Each pixel asks a hash of (seed, card, its cell) which way the cell opens, so any card can be made
alone, in any company and in any order, and a chunk of them is a handful of array operations.

Two kinds of maze can be drawn that locally:
- corridors, three cards in four. The binary-tree maze: every cell of a grid opens either upwards or to the left, which
  makes a spanning tree of the grid, so there is exactly one way between any two cells. Walls and corridors have widths
  of their own.
- diagonals, one card in four: every cell holds a slash or a backslash (the one-line program `10 PRINT`), which adds
  edges at 45 degrees.

A card also draws its cell size, the width of its walls, where its grid begins, mirroring along both axes (the binary
tree leans to one corner) and how often cells open upwards (1/4, 1/2, 3/4), which turns its corridors mostly upright or
mostly level.

Two choices come from a first look at MNIST, where mazes tend to end as one and the same card. Colours are corners of
the colour cube, each channel at one end of the range or the other; and there are 2 to 5 cells along the shorter side,
so that walls are about as wide as a stroke. Both left cards that taught a new network more than fainter colours and
finer cells did.

All of it is integer arithmetic modulo 2^64 and the two ends of the range: the same on every machine.
"""

import numpy as np

from engine.hashing import GOLDEN, keys, mix
from flashcards.contract.image import ImageShape

MAZE_VERSION = 1  # changes when the same seed would give other patterns

FEWEST, MOST = 2, 5  # cells along the shorter side


def mazes(seed: int, first: int, count: int, image: ImageShape, range: tuple[float, float]) -> np.ndarray:
    """Cards number first .. first + count - 1 as x_NHWC, float32 in the range."""
    height, width, channels = image
    key_N = keys(seed, first, count)

    # Each number a card draws has a lane of its own: 0 .. 15 for its layout, then one for each channel.
    lanes = np.arange(16 + channels, dtype=np.uint64) * GOLDEN

    def draw(lane: int, choices: int) -> np.ndarray:
        """A number below `choices` for every card, shaped to meet (N, H, W)."""
        word_N = mix(key_N + lanes[lane])
        return (word_N % np.uint64(choices)).astype(np.int64)[:, None, None]

    side = min(height, width)
    finest, coarsest = max(2, side // MOST), max(2, side // FEWEST)
    period = finest + draw(1, coarsest - finest + 1)
    wall = np.maximum(1, period // (2 + draw(2, 3)))  # a half, a third or a quarter of the cell

    y_N1 = np.arange(height)[None, :, None]
    x_N1 = np.arange(width)[None, None, :]
    y = np.where(draw(3, 2) == 1, height - 1 - y_N1, y_N1) + draw(4, 2**16) % period
    x = np.where(draw(5, 2) == 1, width - 1 - x_N1, x_N1) + draw(6, 2**16) % period
    cell_y, in_y = y // period, y % period  # (N, H, 1)
    cell_x, in_x = x // period, x % period  # (N, 1, W)

    cells = mix(key_N + lanes[7])[:, None, None]
    bits_NHW = mix(mix(cells + cell_y.astype(np.uint64) * GOLDEN) + cell_x.astype(np.uint64) * GOLDEN)
    up_NHW = (bits_NHW >> np.uint64(56)).astype(np.uint8) < 64 * (1 + draw(8, 3))

    # A cell's wall runs along its top and its left side; the side it opens to has a gap, its corner is always wall.
    on_top, on_left = in_y < wall, in_x < wall
    corridors = np.where(on_top, on_left | ~up_NHW, on_left & up_NHW)
    # Half the wall's width on both sides of the cell's diagonal.
    half = (wall + 1) // 2
    diagonals = np.where(up_NHW, np.abs(in_y - in_x) < half, np.abs(in_y + in_x - (period - 1)) < half)
    diagonal = (draw(9, 4) == 0) & (period > 2)  # two pixels make no slash
    walls_NHW = np.where(diagonal, diagonals, corridors)

    words_NC = mix(key_N[:, None] + lanes[16:])
    wall_NC, path_NC = words_NC >> np.uint64(63) == 1, words_NC >> np.uint64(62) & np.uint64(1) == 1
    path_NC = np.where((wall_NC == path_NC).all(1, keepdims=True), ~wall_NC, path_NC)
    bright_NHWC = np.where(walls_NHW[..., None], wall_NC[:, None, None], path_NC[:, None, None])
    return np.where(bright_NHWC, np.float32(range[1]), np.float32(range[0]))
