"""Latents as a Gaussian: drawn from, and compared by their Frechet distance.

FLSD of the paper, between cards and data: d^2 = |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)). With roots, C1 = A^T A
and C2 = B^T B, the last term is the sum of the singular values of A B^T. A is the centred sample itself, so the matrix
to decompose has as many rows as there are cards, however long a latent is.
"""

from dataclasses import dataclass, replace

import numpy as np

from engine.hashing import normals
from flashcards.contract.capsule import Capsule

JITTER = 1e-6  # of the mean variance: makes a covariance of few images or of dead units factorable


@dataclass(frozen=True)
class Gaussian:
    mean_D: np.ndarray
    triangle_DD: np.ndarray | None = None  # lower; covariance = triangle triangle^T
    factor_KD: np.ndarray | None = None  # covariance = factor^T factor + diag(deviation^2)
    deviation_D: np.ndarray | None = None

    @property
    def total_variance(self) -> float:
        """The trace of the covariance."""
        if self.triangle_DD is not None:
            return float((self.triangle_DD**2).sum())
        return float((self.factor_KD**2).sum() + (self.deviation_D**2).sum())

    @property
    def deviation(self) -> float:
        """Root mean square over the numbers of a latent."""
        return float(np.sqrt(self.total_variance / len(self.mean_D)))

    def widened(self, deviation: float) -> "Gaussian":
        """With so much more, the same in every direction."""
        if self.triangle_DD is not None:
            more_DD = deviation**2 * np.eye(len(self.mean_D))
            return from_moments(self.mean_D, self.triangle_DD @ self.triangle_DD.T + more_DD)
        return replace(self, deviation_D=np.sqrt(self.deviation_D**2 + deviation**2))

    def draw(self, key_N: np.ndarray, lane: int) -> np.ndarray:
        """One latent for each card: z_ND."""
        size = len(self.mean_D)
        if self.triangle_DD is not None:
            return self.mean_D + normals(key_N, lane, size) @ self.triangle_DD.T
        rank = len(self.factor_KD)
        drawn = normals(key_N, lane, rank + size)
        return self.mean_D + drawn[:, :rank] @ self.factor_KD + drawn[:, rank:] * self.deviation_D

    def frechet(self, z_ND: np.ndarray) -> float:
        """The Frechet distance, squared as FID has it, between these latents and this Gaussian."""
        z_ND = z_ND.astype(np.float64)
        mean_D = z_ND.mean(0)
        root_ND = (z_ND - mean_D) / np.sqrt(max(1, len(z_ND) - 1))
        common = _nuclear_norm(self._by_root(root_ND))
        apart = ((mean_D - self.mean_D) ** 2).sum()
        return float(max(0.0, apart + (root_ND**2).sum() + self.total_variance - 2 * common))

    def _by_root(self, root_ND: np.ndarray) -> np.ndarray:
        """A B^T, where this covariance is B^T B; the diagonal part never becomes a matrix."""
        if self.triangle_DD is not None:
            return root_ND @ self.triangle_DD
        return np.concatenate([root_ND @ self.factor_KD.T, root_ND * self.deviation_D], axis=1)


def _nuclear_norm(matrix: np.ndarray) -> float:
    """The sum of the singular values, by way of the smaller Gram matrix: many times faster than to decompose it."""
    gram = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0)).sum())


def of_capsule(capsule: Capsule) -> Gaussian:
    if capsule.triangle is not None:
        return from_moments(capsule.mean_D, capsule.covariance())
    return Gaussian(capsule.mean_D, factor_KD=capsule.factor_KD, deviation_D=np.sqrt(capsule.diagonal_D))


def from_moments(mean_D: np.ndarray, covariance_DD: np.ndarray) -> Gaussian:
    size = len(mean_D)
    jitter = JITTER * max(np.trace(covariance_DD) / size, 1e-12)
    # A capsule keeps float32: rounding may have pushed small eigenvalues below zero, so push back until it factors.
    while True:
        try:
            return Gaussian(mean_D, triangle_DD=np.linalg.cholesky(covariance_DD + jitter * np.eye(size)))
        except np.linalg.LinAlgError:
            jitter *= 10


def of_sample(z_ND: np.ndarray) -> Gaussian:
    """Long latents have no covariance in memory: the centred sample itself is its root."""
    if len(z_ND) > z_ND.shape[1]:
        z_ND = z_ND.astype(np.float64)
        return from_moments(z_ND.mean(0), np.atleast_2d(np.cov(z_ND.T)))
    mean_D, root_ND = _centred(z_ND)
    return Gaussian(mean_D, factor_KD=root_ND, deviation_D=np.zeros_like(mean_D))


def spread(z_ND: np.ndarray) -> float:
    """Root mean square distance of two of these latents."""
    return float(np.sqrt(2 * z_ND.astype(np.float64).var(0, ddof=1).sum())) if len(z_ND) > 1 else 0.0


def between(z_ND: np.ndarray, other_MD: np.ndarray) -> float:
    """The Frechet distance of two samples, each taken for a Gaussian."""
    if min(len(z_ND), len(other_MD)) > z_ND.shape[1]:
        return of_sample(other_MD).frechet(z_ND)
    # Long latents have no covariance in memory: the centred samples themselves are its roots.
    means, roots = zip(*(_centred(sample) for sample in (z_ND, other_MD)), strict=True)
    common = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    apart = ((means[0] - means[1]) ** 2).sum()
    return float(max(0.0, apart + (roots[0] ** 2).sum() + (roots[1] ** 2).sum() - 2 * common))


def _centred(z_ND: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean, and A with covariance = A^T A."""
    z_ND = z_ND.astype(np.float64)
    mean_D = z_ND.mean(0)
    return mean_D, (z_ND - mean_D) / np.sqrt(max(1, len(z_ND) - 1))
