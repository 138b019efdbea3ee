"""Weighted alpha: how heavy the tails of a network's spectra are, from its weights alone.

Trained weights have eigenvalues whose density falls as a power law, rho(lambda) ~ lambda^-alpha (Martin & Mahoney,
Heavy-Tailed Universality Predicts Trends in Test Accuracies for Very Large Pre-Trained Deep Neural Networks, 2020).
Weighted alpha is the mean of alpha * log10(lambda_max) over all matrices. Two networks that learnt the same have
similar ones.

alpha is the maximum likelihood exponent of the eigenvalues from x_min on, and x_min the one of them from which on
the power law fits best, by the distance of Kolmogorov and Smirnov (Clauset, Shalizi & Newman, Power-Law Distributions
in Empirical Data, 2009):

    alpha = 1 + n / sum_i ln(x_i / x_min)        D = max_i |1 - (x_i / x_min)^(1 - alpha) - i / n|,  i = 0 .. n - 1

What is a matrix, its scale, and which ones count follow weightwatcher 0.7 with `ww2x=True`, as the paper's figures do.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch

ZERO = 1e-5  # an eigenvalue up to this is none: the matrix has not its full rank
FEWEST = 8  # eigenvalues that an exponent is read from
FEW = 20  # below, the exponent is corrected for its bias, and no tail is shorter than FEWEST
ALIKE = 1e-9  # numbers whose logarithms are so close are equal up to rounding


def weighted_alpha(weights: Mapping[str, torch.Tensor]) -> float | None:
    """Of a state dict. None where no matrix is large enough to have a tail."""
    found = []
    for weight in weights.values():
        for matrix_MN in matrices(weight.detach().cpu().double().numpy()):
            spectrum = eigenvalues(matrix_MN)
            if (alpha := exponent(spectrum)) is not None:
                found.append(alpha * np.log10(spectrum[-1]))
    # Exactly summed: a file names its tensors in another order than the network does.
    return math.fsum(found) / len(found) if found else None


def matrices(weight: np.ndarray) -> np.ndarray:
    """A linear layer is one; a conv is one for each of its k*k places, from channels to channels. Vectors are none."""
    if weight.ndim == 2:
        return weight[None]
    if weight.ndim == 4:
        out, into, height, width = weight.shape
        # Glorot's init makes the weights of a k*k conv smaller by its k*k places: that is undone, up to the 2 of
        # its own numerator.
        scale = np.sqrt(height * width / 2)
        return scale * weight.transpose(2, 3, 0, 1).reshape(height * width, out, into)
    return np.empty((0, 0, 0))


def eigenvalues(matrix_MN: np.ndarray) -> np.ndarray:
    """Those of W^T W that are not zero, ascending."""
    rows, columns = matrix_MN.shape
    gram = matrix_MN @ matrix_MN.T if rows < columns else matrix_MN.T @ matrix_MN
    spectrum = np.linalg.eigvalsh(gram)
    return spectrum[spectrum > ZERO]


def exponent(x: np.ndarray) -> float | None:
    """Of the power law that fits the tail of these ascending numbers best. None: they have no tail, or no spread."""
    if len(x) < FEWEST:
        return None
    few = len(x) < FEW
    best, smallest = None, np.inf
    logs = np.log(x)
    for n in range(len(x), FEWEST - 1 if few else 1, -1):
        above = logs[-n:] - logs[-n]
        if above[-1] < ALIKE:  # and so are all shorter tails
            break
        alpha = 1 + (n - 1 if few else n) / above.sum()
        distance = np.abs(1 - np.exp((1 - alpha) * above) - np.arange(n) / n).max()
        if distance < smallest:
            best, smallest = float(alpha), distance
    return best
