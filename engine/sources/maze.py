"""Mazes: corridors and walls in two random colours, the paper's P(M).

No maze is built. Each pixel asks a hash of (seed, card, its cell) which way the cell opens, so any card can be made
alone, in any company and in any order, and a chunk of them is a handful of array operations.

Two kinds of maze can be drawn that locally:
- corridors, three cards in four. The binary-tree maze: every cell of a grid opens either upwards or to the left, which
  makes a spanning tree of the grid, so there is exactly one way between any two cells. Walls and corridors have widths
  of their own.
- diagonals, one card in four: every cell holds a slash or a backslash (the one-line program `10 PRINT`), which adds
  edges at 45 degrees.

A card also draws its cell size, where its grid begins, mirroring along both axes (the binary tree leans to one corner)
and how often cells open upwards (1/4, 1/2, 3/4), which turns its corridors mostly upright or mostly level.

All of it is integer arithmetic modulo 2^64 up to a last table of 256 values: the same on every machine.
"""

import numpy as np

from flashcards.contract.image import ImageShape

MAZE_VERSION = 1  # changes when the same seed would give other patterns

#: Widths in pixels of (wall, corridor), for images up to 64 pixels a side; larger ones also draw multiples of them.
GRIDS = np.array([(1, 1), (1, 2), (1, 3), (2, 2), (2, 4), (3, 3), (4, 4)], dtype=np.int64)
SIDE_A_SCALE = 32  # a scale of k is drawn only where the shorter side has k times this many pixels
LEAST_CONTRAST = 64  # of 255, in at least one channel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: the stride of splitmix64


def mazes(seed: int, first: int, count: int, image: ImageShape, range: tuple[float, float]) -> np.ndarray:
    """Cards number first .. first + count - 1 as x_NHWC, float32 in the range."""
    height, width, channels = image
    card_N = np.arange(first, first + count, dtype=np.uint64)
    key_N = _mix(_mix(np.full(count, seed, dtype=np.uint64)) + card_N * _GOLDEN)

    # Each number a card draws has a lane of its own: 0 .. 15 for its layout, then one for each channel.
    lanes = np.arange(16 + channels, dtype=np.uint64) * _GOLDEN

    def draw(lane: int, choices: int) -> np.ndarray:
        """A number below `choices` for every card, shaped to meet (N, H, W)."""
        word_N = _mix(key_N + lanes[lane])
        return (word_N % np.uint64(choices)).astype(np.int64)[:, None, None]

    # At least two cells must fit along a side; the finest grid always may be drawn.
    side = min(height, width)
    fitting = GRIDS[: max(1, int((2 * GRIDS.sum(1) <= side).sum()))]
    grid_N = fitting[draw(1, len(fitting)).ravel()] * (1 + draw(2, max(1, side // SIDE_A_SCALE)).reshape(-1, 1))
    wall, period = grid_N[:, :1, None], grid_N.sum(1)[:, None, None]

    y_N1 = np.arange(height)[None, :, None]
    x_N1 = np.arange(width)[None, None, :]
    y = np.where(draw(3, 2) == 1, height - 1 - y_N1, y_N1) + draw(4, 2**16) % period
    x = np.where(draw(5, 2) == 1, width - 1 - x_N1, x_N1) + draw(6, 2**16) % period
    cell_y, in_y = y // period, y % period  # (N, H, 1)
    cell_x, in_x = x // period, x % period  # (N, 1, W)

    cells = _mix(key_N + lanes[7])[:, None, None]
    bits_NHW = _mix(_mix(cells + cell_y.astype(np.uint64) * _GOLDEN) + cell_x.astype(np.uint64) * _GOLDEN)
    up_NHW = (bits_NHW >> np.uint64(56)).astype(np.uint8) < 64 * (1 + draw(8, 3))

    # A cell's wall runs along its top and its left side; the side it opens to has a gap, its corner is always wall.
    on_top, on_left = in_y < wall, in_x < wall
    corridors = np.where(on_top, on_left | ~up_NHW, on_left & up_NHW)
    # Half the wall's width on both sides of the cell's diagonal.
    half = (wall + 1) // 2
    diagonals = np.where(up_NHW, np.abs(in_y - in_x) < half, np.abs(in_y + in_x - (period - 1)) < half)
    diagonal = (draw(9, 4) == 0) & (period > 2)  # two pixels make no slash
    walls_NHW = np.where(diagonal, diagonals, corridors)

    words_NC = _mix(key_N[:, None] + lanes[16:])
    wall_NC, path_NC = words_NC >> np.uint64(56), (words_NC >> np.uint64(48)) & np.uint64(255)
    wall_NC, path_NC = wall_NC.astype(np.int64), path_NC.astype(np.int64)
    faint_N1 = (np.abs(wall_NC - path_NC) < LEAST_CONTRAST).all(1, keepdims=True)
    path_NC = np.where(faint_N1, (path_NC + 128) % 256, path_NC)

    low, high = range
    table = (np.arange(256) / 255 * (high - low) + low).astype(np.float32)
    return np.where(walls_NHW[..., None], table[wall_NC][:, None, None], table[path_NC][:, None, None])


def _mix(word: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser: each bit of the input flips about half the bits of the output."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
