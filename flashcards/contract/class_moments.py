"""Moments of latents a class: mean, and covariance as its strongest directions and what they leave. No image in it.

In a capsule they are the tensors

    class_count     C          images of each class
    class_mean      C x D
    class_factor    C x K x D  covariance of a class = factor^T factor + diag(diagonal)
    class_diagonal  C x D

K is what there is room for: 200 KB for all classes together, beside the 200 KB of the capsule itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

MOST_BYTES = 200_000
MOST_MEASURED = 2**28  # bytes of all covariances while they are measured
NAMES = ("class_count", "class_mean", "class_factor", "class_diagonal")


@dataclass(frozen=True)
class ClassMoments:
    count_C: Array
    mean_CD: Array
    factor_CKD: Array
    diagonal_CD: Array

    @property
    def known(self) -> list[int]:
        """The classes that there were images of."""
        return np.flatnonzero(self.count_C).tolist()

    def tensors(self) -> dict[str, Array]:
        return dict(zip(NAMES, (self.count_C, self.mean_CD, self.factor_CKD, self.diagonal_CD), strict=True))


class ClassMeter:
    """Measures them, batch after batch."""

    def __init__(self, classes: int, latent: int) -> None:
        self.count_C = np.zeros(classes)
        self._sum_CD = np.zeros((classes, latent))
        self._products_CDD = np.zeros((classes, latent, latent))

    @staticmethod
    def fits(classes: int, latent: int) -> bool:
        """Is there room for a mean and a variance of each class, and memory to measure them in?"""
        return rank_of(classes, latent) >= 0 and 8 * classes * latent**2 <= MOST_MEASURED

    def add(self, z_ND: Array, class_N: NDArray[np.integer]) -> None:
        z_ND = np.asarray(z_ND, np.float64).reshape(len(z_ND), -1)
        for label in np.unique(class_N):
            own_ND = z_ND[class_N == label]
            self.count_C[label] += len(own_ND)
            self._sum_CD[label] += own_ND.sum(0)
            self._products_CDD[label] += own_ND.T @ own_ND

    def moments(self) -> ClassMoments:
        classes, latent = self._sum_CD.shape
        rank = min(rank_of(classes, latent), latent)
        mean_CD = self._sum_CD / np.maximum(self.count_C, 1)[:, None]
        factor_CKD, diagonal_CD = np.zeros((classes, rank, latent)), np.zeros((classes, latent))
        for label in np.flatnonzero(self.count_C > 1):
            count = self.count_C[label]
            covariance_DD = self._products_CDD[label] / count - np.outer(mean_CD[label], mean_CD[label])
            covariance_DD *= count / (count - 1)
            values_D, vectors_DD = np.linalg.eigh(covariance_DD)
            strongest = slice(latent - rank, None)
            factor_CKD[label] = np.sqrt(np.maximum(values_D[strongest], 0))[:, None] * vectors_DD[:, strongest].T
            rest_D = np.diag(covariance_DD) - (factor_CKD[label] ** 2).sum(0)
            diagonal_CD[label] = np.maximum(rest_D, 0)
        return ClassMoments(self.count_C, mean_CD, factor_CKD, diagonal_CD)


def rank_of(classes: int, latent: int) -> int:
    """Directions that there is room for; below 0, there is none even for the means and variances."""
    return MOST_BYTES // (4 * classes * latent) - 2


def read(tensors: Mapping[str, Array], latent: int) -> ClassMoments:
    """Raises ValueError where they cannot be moments."""
    count_C, mean_CD, factor_CKD, diagonal_CD = (tensors[name] for name in NAMES)
    classes, rank = len(count_C), factor_CKD.shape[1] if factor_CKD.ndim == 3 else 0
    shapes = ((classes,), (classes, latent), (classes, rank, latent), (classes, latent))
    for name, shape in zip(NAMES, shapes, strict=True):
        if tensors[name].shape != shape:
            raise ValueError(f"{name} has the shape {tensors[name].shape}, and the others ask for {shape}")
    if (diagonal_CD < 0).any() or (count_C < 0).any():
        raise ValueError("a variance or a count of a class is negative")
    if not count_C.any():
        raise ValueError("no class has an image")
    return ClassMoments(count_C, mean_CD, factor_CKD, diagonal_CD)
