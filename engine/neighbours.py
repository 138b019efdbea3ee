"""Nearest neighbours: among latents, whether one set covers another; among images, which one is closest to a card.

|a - b|^2 = |a|^2 + |b|^2 - 2 a.b, a block of rows at a time: no matrix of all distances is ever in memory.

Improved precision and recall (Kynkaanniemi et al., NeurIPS 2019). Around every point of a set lies a ball that reaches
to its k-th nearest neighbour in the same set, and the balls together are what the set covers. Precision is the share of
cards that the images cover, recall the share of images that the cards cover.
"""

from collections.abc import Callable

import numpy as np
import torch

from engine.data import Images

K = 3  # neighbours, as in the paper
BLOCK = 512  # latents against all others: 12 MB of distances where there are 3,000
BLOCK_NUMBERS = 2**23  # pixels of a block of images
EQUAL = 1e-12  # of the largest squared length: what rounding leaves between equal latents


def even(count: int, most: int) -> np.ndarray:
    """At most so many of the rows 0 .. count-1, all equally far from each other."""
    taken = min(count, most)
    return np.arange(taken) * count // max(1, taken)


def precision_recall(cards_ND: torch.Tensor, images_MD: torch.Tensor) -> tuple[float, float]:
    cards_ND, images_MD = cards_ND.double(), images_MD.double()
    # Around a common centre the squared lengths are small, and so is what their difference loses.
    centre_D = images_MD.mean(0)
    cards_ND, images_MD = cards_ND - centre_D, images_MD - centre_D
    return _share_covered(cards_ND, images_MD), _share_covered(images_MD, cards_ND)


def _share_covered(z_ND: torch.Tensor, by_MD: torch.Tensor) -> float:
    equal = EQUAL * max(_lengths(z_ND).max().item(), _lengths(by_MD).max().item())
    reach_M = _reach(by_MD) + equal
    covered = 0
    for block_BD in z_ND.split(BLOCK):
        covered += int((_squared(block_BD, by_MD) <= reach_M).any(1).sum())
    return covered / len(z_ND)


def _reach(z_ND: torch.Tensor) -> torch.Tensor:
    """Squared distance of each point to its k-th neighbour, itself not counted."""
    parts = []
    for number, block_BD in enumerate(z_ND.split(BLOCK)):
        squared_BN = _squared(block_BD, z_ND)
        squared_BN.diagonal(number * BLOCK).fill_(torch.inf)
        parts.append(squared_BN.topk(K, largest=False).values[:, -1])
    return torch.cat(parts)


def _squared(a_BD: torch.Tensor, b_ND: torch.Tensor) -> torch.Tensor:
    return (_lengths(a_BD)[:, None] + _lengths(b_ND) - 2 * a_BD @ b_ND.T).clamp_min_(0)


def _lengths(z_ND: torch.Tensor) -> torch.Tensor:
    return z_ND.square().sum(1)


def nearest_images(
    cards: Images,
    card_rows: np.ndarray,
    images: Images,
    rows: np.ndarray,
    device: torch.device,
    after_block: Callable[[int], None] = lambda done: None,
) -> tuple[np.ndarray, np.ndarray]:
    """For each card the row of its nearest image, and how far it is: root mean square over pixels, the range being 1.

    `after_block` hears how many images have been looked at for how many cards, multiplied, and may raise.
    """
    block = max(1, BLOCK_NUMBERS // cards.shape.pixels)
    found, far = [], []
    for some_cards in _blocks(card_rows, block):
        cards_BP = _pixels(cards, some_cards, device)
        best_B = torch.full((len(some_cards),), torch.inf, device=device)
        row_B = np.zeros(len(some_cards), np.int64)
        for some in _blocks(rows, block):
            least_B, place_B = _squared(cards_BP, _pixels(images, some, device)).min(1)
            row_B = np.where((least_B < best_B).cpu().numpy(), some[place_B.cpu().numpy()], row_B)
            best_B = torch.minimum(best_B, least_B)
            after_block(len(some_cards) * len(some))
        # The sum above finds the place but loses the digits of a small distance: a copy must be at 0.
        far.append((cards_BP - _pixels(images, row_B, device)).square().mean(1).sqrt().cpu().numpy())
        found.append(row_B)
    return np.concatenate(found), np.concatenate(far).astype(np.float64)


def _blocks(rows: np.ndarray, block: int) -> list[np.ndarray]:
    return [rows[first : first + block] for first in range(0, len(rows), block)]


def _pixels(images: Images, rows: np.ndarray, device: torch.device) -> torch.Tensor:
    low, high = images.range
    return images.batch(rows, device).flatten(1).sub_((low + high) / 2).div_(high - low)
