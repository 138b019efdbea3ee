"""Images in memory, batches of them on a device, and an order of them that can be taken up anywhere.

An npz holds x_train / y_train / x_test / y_test, or x / y, which means train. x is (N, H, W) or (N, H, W, C), or
(N, D), vectors as images of one row: uint8, scaled to the network's range, or floating and already in it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from engine.errors import DatasetUnfit
from flashcards.contract.image import ImageShape

KEYS = {"train": ("x_train", "x"), "test": ("x_test",)}
LABELS = {"train": ("y_train", "y"), "test": ("y_test",)}


@dataclass(frozen=True)
class Images:
    x_NHWC: np.ndarray  # uint8 stays uint8: a quarter of the memory, and of the traffic to a GPU
    range: tuple[float, float]

    def __len__(self) -> int:
        return len(self.x_NHWC)

    @property
    def shape(self) -> ImageShape:
        return ImageShape(*self.x_NHWC.shape[1:])

    def batch(self, rows: np.ndarray, device: torch.device) -> torch.Tensor:
        x_BHWC = torch.from_numpy(self.x_NHWC[rows])
        if device.type == "cuda":
            x_BHWC = x_BHWC.pin_memory().to(device, non_blocking=True)
        # Channels last in memory by its strides alone: no copy.
        return self._in_range(x_BHWC.permute(0, 3, 1, 2))

    def median(self, rows: np.ndarray) -> torch.Tensor:
        """The image m_CHW that minimises the mean of |x - m| over these rows: pixel by pixel, the median."""
        x_NP = self.x_NHWC.reshape(len(self), -1)
        columns = max(1, 2**26 // (len(rows) * x_NP.itemsize))  # 64 MB at a time
        parts = [np.median(x_NP[rows, first : first + columns], axis=0) for first in range(0, x_NP.shape[1], columns)]
        m_HWC = torch.from_numpy(np.concatenate(parts).astype(np.float32)).reshape(tuple(self.shape))
        return self._in_range(m_HWC.permute(2, 0, 1))

    def mean(self, rows: np.ndarray) -> torch.Tensor:
        """The image m_CHW that minimises the mean of (x - m)^2 over these rows."""
        total_HWC = np.zeros(self.x_NHWC.shape[1:])
        for first in range(0, len(rows), 1024):
            total_HWC += self.x_NHWC[rows[first : first + 1024]].sum(0, dtype=np.float64)
        m_HWC = torch.from_numpy((total_HWC / len(rows)).astype(np.float32))
        return self._in_range(m_HWC.permute(2, 0, 1))

    def stray(self) -> str | None:
        """In words, that floating images lie outside the range they should be in."""
        if self.x_NHWC.dtype == np.uint8 or not len(self):
            return None
        low, high = float(self.x_NHWC.min()), float(self.x_NHWC.max())
        slack = 1e-3 * (self.range[1] - self.range[0])
        if self.range[0] - slack <= low and high <= self.range[1] + slack:
            return None
        return (
            f"the images hold values from {low:.4g} to {high:.4g}, outside the network's range of {self.range[0]:g} "
            f"to {self.range[1]:g}; floating images are used as they are, only uint8 is scaled"
        )

    def _in_range(self, x: torch.Tensor) -> torch.Tensor:
        x = x.to(torch.float32)
        if self.x_NHWC.dtype != np.uint8:
            return x
        low, high = self.range
        # Divided first, so that 255 is exactly the upper end.
        return x.div_(255).mul_(high - low).add_(low)


def joined(arrays: list[np.ndarray], range: tuple[float, float]) -> Images:
    """x_NHWC after x_NHWC; where some are floating, all are."""
    if any(array.dtype != np.uint8 for array in arrays):
        everything = [np.arange(len(array)) for array in arrays]
        cpu = torch.device("cpu")
        batches = [Images(x, range).batch(rows, cpu) for x, rows in zip(arrays, everything, strict=True)]
        arrays = [x_BCHW.permute(0, 2, 3, 1).numpy() for x_BCHW in batches]
    return Images(np.concatenate(arrays), range)


def load_images(path: Path, split: str, range: tuple[float, float]) -> Images | None:
    """The images of a split, or None where the dataset has no such split."""
    with np.load(path, allow_pickle=False) as arrays:
        key = next((key for key in KEYS[split] if key in arrays), None)
        if key is None:
            return None
        x = arrays[key]
    if x.ndim == 2:
        x = x[:, None]
    if x.ndim == 3:
        x = x[..., None]
    if x.ndim != 4:
        raise DatasetUnfit(f"{key} has {x.ndim} axes; images are (N, H, W) or (N, H, W, C), vectors (N, D)")
    if x.dtype != np.uint8:
        if not np.issubdtype(x.dtype, np.floating):
            raise DatasetUnfit(f"{key} is of type {x.dtype}; images are uint8 or floating")
        with np.errstate(over="ignore"):
            x = x.astype(np.float32, copy=False)
        # A minimum hands on NaN, so the two ends tell of everything between them.
        if x.size and not np.isfinite([x.min(), x.max()]).all():
            raise DatasetUnfit(f"{key} holds values that are not finite in float32")
    return Images(np.ascontiguousarray(x), range)


def has_labels(path: Path, split: str) -> bool:
    with np.load(path, allow_pickle=False) as arrays:
        return any(key in arrays for key in LABELS[split])


def load_labels(path: Path, split: str, classes: int | None = None) -> np.ndarray:
    """Which of so many classes each image of a split is of."""
    with np.load(path, allow_pickle=False) as arrays:
        key = next((key for key in LABELS[split] if key in arrays), None)
        if key is None:
            raise DatasetUnfit(f"the images of {split} have no labels: the dataset needs an array {LABELS[split][0]}")
        labels_N = arrays[key]
    low, high = int(labels_N.min()), int(labels_N.max())
    if classes is not None and (low < 0 or high >= classes):
        raise DatasetUnfit(f"{key} has labels from {low} to {high}, and the network's classes are 0 to {classes - 1}")
    return labels_N.astype(np.int64)


def shuffled(count: int, seed: int, stream: int) -> np.ndarray:
    """0 .. count-1 in an order fixed by (seed, stream): stream 0 splits, stream e orders epoch e."""
    return np.random.Generator(np.random.Philox(key=[seed, stream])).permutation(count)


def hold_out(count: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows kept back, at least one on each side."""
    if count < 2:
        raise DatasetUnfit(
            f"the dataset has {count} training image{'' if count == 1 else 's'}; at least 2 are needed, one to learn "
            "from and one to hold out"
        )
    kept_back = min(max(1, round(share * count)), count - 1)
    rows = shuffled(count, seed, 0)
    return rows[:-kept_back], rows[-kept_back:]


def hold_out_of_each(labels_N: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """As `hold_out`, by class: as large a share of each, and of every class at least one image to learn from."""
    rows = shuffled(len(labels_N), seed, 0)
    by_class = rows[np.argsort(labels_N[rows], kind="stable")]
    follows = np.diff(labels_N[by_class], prepend=-1) == 0
    spare = by_class[follows]
    if not len(spare):
        raise DatasetUnfit("every class has one image: none is left to hold out and validate with")
    kept_back = min(max(1, round(share * len(rows))), len(spare))
    evenly = (2 * np.arange(kept_back) + 1) * len(spare) // (2 * kept_back)
    chosen = np.isin(rows, spare[evenly])
    return rows[~chosen], rows[chosen]
