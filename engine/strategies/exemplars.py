"""Images kept of each class, as near to its mean in the latent space as so few can be together (herding, Rebuffi et
al., 2017): p_k = argmin |mean - (phi(p) + sum of those chosen) / k|. Any beginning of the order is a fair choice.
"""

import numpy as np
import torch

from engine.data import Images
from engine.strategies.setting import Setting


def herded(setting: Setting, network: torch.nn.Module, rows: np.ndarray, labels_N: np.ndarray, most: int) -> np.ndarray:
    """Of these rows, up to `most` of each class, classes in turn: the first of each, the second of each, .."""
    z_NL = _latents(setting, network, setting.images, rows)
    ranked = []
    for label in np.unique(labels_N[rows]):
        own = np.flatnonzero(labels_N[rows] == label)
        ranked += [(place, int(label), row) for place, row in enumerate(rows[own[_order(z_NL[own], most)]])]
    return np.array([row for _, _, row in sorted(ranked)], dtype=np.intp)


def _order(z_NL: np.ndarray, most: int) -> np.ndarray:
    mean_L, total_L, chosen = z_NL.mean(0), np.zeros(z_NL.shape[1]), []
    free = np.ones(len(z_NL), dtype=bool)
    for count in range(1, min(most, len(z_NL)) + 1):
        far_N = ((mean_L - (z_NL + total_L) / count) ** 2).sum(1)
        best = int(np.argmin(np.where(free, far_N, np.inf)))
        chosen.append(best)
        free[best] = False
        total_L += z_NL[best]
    return np.array(chosen, dtype=np.intp)


@torch.inference_mode()
def _latents(setting: Setting, network: torch.nn.Module, images: Images, rows: np.ndarray) -> np.ndarray:
    """Of unit length, as herding has them."""
    parts = []
    for first in range(0, len(rows), setting.chunk):
        z = network.encoder(images.batch(rows[first : first + setting.chunk], setting.device)).flatten(1)
        parts.append(torch.nn.functional.normalize(z, dim=1).cpu().double().numpy())
        setting.between()
    return np.concatenate(parts)
