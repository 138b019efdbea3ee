"""Latents of one class after the other: card i is of the i-th known class, in turn, so any beginning is in balance.

z = mean_c + factor_c^T a + deviation_c b, with a and b standard normal: a draw from the moments that a capsule has of
class c.
"""

import numpy as np

from engine.hashing import keys, normals
from flashcards.contract.class_moments import ClassMoments


def classes_in_turn(moments: ClassMoments, first: int, count: int) -> np.ndarray:
    """Which class each of the cards number first .. first + count - 1 is of."""
    known = np.array(moments.known)
    return known[np.arange(first, first + count) % len(known)]


def drawn(moments: ClassMoments, seed: int, first: int, count: int, lane: int) -> np.ndarray:
    """One latent for each card: z_ND."""
    class_N = classes_in_turn(moments, first, count)
    rank, size = moments.factor_CKD.shape[1:]
    normal = normals(keys(seed, first, count), lane, rank + size)
    along_ND = np.einsum("nk,nkd->nd", normal[:, :rank], moments.factor_CKD[class_N])
    return moments.mean_CD[class_N] + along_ND + normal[:, rank:] * np.sqrt(moments.diagonal_CD[class_N])
