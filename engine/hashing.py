"""Random numbers as a function of (seed, card, lane): any card can be made alone, in any company and in any order.

Integers are arithmetic modulo 2^64, the same on every machine; normal deviates go through the build's log and cosine.
"""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: the stride of splitmix64


def mix(word: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser: each bit of the input flips about half the bits of the output."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def keys(seed: int, first: int, count: int) -> np.ndarray:
    """One word for each of the cards number first .. first + count - 1."""
    card_N = np.arange(first, first + count, dtype=np.uint64)
    return mix(mix(np.full(count, seed, dtype=np.uint64)) + card_N * GOLDEN)


def words(key_N: np.ndarray, lane: int, size: int) -> np.ndarray:
    """(N, size) words of every card; a lane is a stream of its own."""
    place = (np.uint64(lane) << np.uint64(40)) + np.arange(size, dtype=np.uint64)
    return mix(mix(key_N)[:, None] + place * GOLDEN)


def uniforms(key_N: np.ndarray, lane: int, size: int) -> np.ndarray:
    """In (0, 1), never an end: 53 bits and a half."""
    return ((words(key_N, lane, size) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def normals(key_N: np.ndarray, lane: int, size: int) -> np.ndarray:
    """(N, size) standard normal deviates, by Box and Muller: two out of each pair of uniforms."""
    pairs = -(-size // 2)
    u = uniforms(key_N, lane, 2 * pairs)
    length, angle = np.sqrt(-2 * np.log(u[:, :pairs])), 2 * np.pi * u[:, pairs:]
    return np.concatenate([length * np.cos(angle), length * np.sin(angle)], axis=1)[:, :size]
