"""Cards of one class after the other: card i is of the i-th known class, in turn, so any beginning is in balance.

z = mean_c + factor_c^T a + deviation_c b, with a and b standard normal: a draw from the moments that a capsule has of
class c. The decoder makes an image of it.
"""

import numpy as np
import torch

from engine.hashing import keys, normals
from engine.sources.latent import LANE
from flashcards.contract.class_moments import ClassMoments

BY_CLASS_VERSION = 1  # changes when the same seed would give other latents


def classes_in_turn(moments: ClassMoments, first: int, count: int) -> np.ndarray:
    """Which class each of the cards number first .. first + count - 1 is of."""
    known = np.array(moments.known)
    return known[np.arange(first, first + count) % len(known)]


def drawn(moments: ClassMoments, seed: int, first: int, count: int) -> np.ndarray:
    """One latent for each card: z_ND."""
    class_N = classes_in_turn(moments, first, count)
    rank, size = moments.factor_CKD.shape[1:]
    normal = normals(keys(seed, first, count), LANE, rank + size)
    along_ND = np.einsum("nk,nkd->nd", normal[:, :rank], moments.factor_CKD[class_N])
    return moments.mean_CD[class_N] + along_ND + normal[:, rank:] * np.sqrt(moments.diagonal_CD[class_N])


def decoded_by_class(
    network: torch.nn.Module,
    moments: ClassMoments,
    seed: int,
    first: int,
    count: int,
    latent: tuple[int, ...],
    device: torch.device,
) -> torch.Tensor:
    """Cards number first .. first + count - 1 before any pass, as x_BCHW."""
    z_ND = drawn(moments, seed, first, count).astype(np.float32)
    z = torch.from_numpy(z_ND.reshape(count, *latent)).to(device)
    return network.decoder(z.contiguous(memory_format=torch.channels_last) if z.ndim == 4 else z)
