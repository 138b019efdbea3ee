"""How good the answers of a classifier are. Scores y_NK: a row an image, a column a class, before a softmax."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from engine.data import Images

BINS = 15  # of confidence, as in Guo et al., On Calibration of Modern Neural Networks, 2017


@torch.inference_mode()
def scores(
    predict: Callable[[torch.Tensor], torch.Tensor],
    images: Images,
    rows: np.ndarray,
    chunk: int,
    device: torch.device,
    between: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """float64; `between` runs after every chunk and may raise."""
    parts = []
    for first in range(0, len(rows), chunk):
        parts.append(predict(images.batch(rows[first : first + chunk], device)).cpu().double().numpy())
        between()
    return np.concatenate(parts)


def log_probabilities(y_NK: np.ndarray) -> np.ndarray:
    shifted = y_NK - y_NK.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def log_loss(y_NK: np.ndarray, labels_N: np.ndarray) -> float:
    """Mean of -log p of the label."""
    return float(-log_probabilities(y_NK)[np.arange(len(labels_N)), labels_N].mean())


def accuracy(y_NK: np.ndarray, labels_N: np.ndarray) -> float:
    return float((y_NK.argmax(1) == labels_N).mean())


def accuracy_given_head(y_NK: np.ndarray, labels_N: np.ndarray, heads: Sequence[int]) -> float:
    """Where it is told which head to ask: the highest score of the head that the label belongs to."""
    ends = np.cumsum(heads)
    head_K = np.searchsorted(ends, np.arange(ends[-1]), side="right")
    others_NK = head_K != head_K[labels_N][:, None]
    return accuracy(np.where(others_NK, -np.inf, y_NK), labels_N)


def constant_log_loss(known_M: np.ndarray, labels_N: np.ndarray) -> float:
    """Of who answers with the shares of the classes among the known ones; each class has to be among them."""
    return float(-np.log(np.bincount(known_M)[labels_N] / len(known_M)).mean())


def constant_accuracy(known_M: np.ndarray, labels_N: np.ndarray) -> float:
    """Of who always answers with the most frequent class of the known ones."""
    return float((labels_N == np.bincount(known_M).argmax()).mean())


def confusion(y_NK: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """Images of class i that were answered with class j."""
    classes = y_NK.shape[1]
    return np.bincount(labels_N * classes + y_NK.argmax(1), minlength=classes**2).reshape(classes, classes)


def calibration(y_NK: np.ndarray, labels_N: np.ndarray) -> tuple[float, list[dict[str, float]]]:
    """ECE, and the bins that it is taken over: sum over bins of n_b / N |accuracy_b - confidence_b|.

    The confidence of an answer is its probability; bins are equally wide, and an upper end belongs to its bin.
    """
    p_N = np.exp(log_probabilities(y_NK).max(1))
    right_N = y_NK.argmax(1) == labels_N
    edges = np.linspace(0, 1, BINS + 1)
    bin_N = np.clip(np.searchsorted(edges, p_N, side="left") - 1, 0, BINS - 1)
    bins, error = [], 0.0
    for place in range(BINS):
        here = bin_N == place
        count = int(here.sum())
        told = {"from": float(edges[place]), "to": float(edges[place + 1]), "images": count}
        if count:
            told |= {"confidence": float(p_N[here].mean()), "accuracy": float(right_N[here].mean())}
            error += count / len(labels_N) * abs(told["accuracy"] - told["confidence"])
        bins.append(told)
    return error, bins
