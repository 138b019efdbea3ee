"""Real images for reports and benches: npz files in the folder that FLASHCARDS_DATA names, prepared as in the paper.

mnist.npz, fashion_mnist.npz, cifar10.npz, ...: x_train and x_test, uint8. Grey images are brought to 32x32 bilinearly
and their channel is copied to three.
"""

import os
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 32
MANY_CLASSES = 100  # so few images of each that halves of them are no two tasks


def data_folder() -> Path:
    named = os.environ.get("FLASHCARDS_DATA")
    if not named:
        raise SystemExit("FLASHCARDS_DATA names no folder: set it to one that holds mnist.npz, cifar10.npz, ...")
    return Path(named)


def prepare(source: Path, target: Path, images: int, tests: int, side: int = SIDE, half: int | None = None) -> None:
    """The first images of each split, as an npz that a training takes; of those only a half, where one is named."""
    with np.load(source, allow_pickle=False) as arrays:
        found = {split: arrays[f"x_{split}"][:count] for split, count in (("train", images), ("test", tests))}
        if half is not None:
            labels = {split: arrays[f"y_{split}"][: len(x)] for split, x in found.items() if f"y_{split}" in arrays}
            found = {split: x[in_half(half, len(x), labels.get(split))] for split, x in found.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = target.with_suffix(".part.npz")
    np.savez(whole, **{f"x_{split}": _in_colour(_resized(x, side)) for split, x in found.items()})
    whole.replace(target)


def prepare_labelled(source: Path, target: Path, images: int, tests: int, side: int = SIDE, part: int = 1) -> None:
    """With their labels; `part` 2 has the second so many training images. Tests are the same for all parts."""
    with np.load(source, allow_pickle=False) as arrays:
        if len(arrays["x_train"]) < part * images:
            raise SystemExit(
                f"{source.name} has {len(arrays['x_train']):,} images: too few for {part} times {images:,}"
            )
        rows = {"train": slice((part - 1) * images, part * images), "test": slice(tests)}
        found = {f"{name}_{split}": arrays[f"{name}_{split}"][rows[split]] for split in rows for name in "xy"}
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = target.with_suffix(".part.npz")
    np.savez(whole, **{k: _in_colour(_resized(v, side)) if k[0] == "x" else v for k, v in found.items()})
    whole.replace(target)


def in_half(half: int, count: int, labels: np.ndarray | None) -> np.ndarray:
    """Which rows belong to half 1 or 2: by class, the lower labels first, or by place where classes are many."""
    if labels is not None and labels.max() < MANY_CLASSES:
        is_first = labels < (labels.max() + 1) / 2
    else:
        is_first = np.arange(count) < count / 2
    return is_first if half == 1 else ~is_first


def _resized(x: np.ndarray, side: int) -> np.ndarray:
    if x.shape[1:3] == (side, side):
        return x
    sized = [Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR) for image in x]
    return np.stack([np.asarray(image) for image in sized])


def _in_colour(x: np.ndarray) -> np.ndarray:
    return x if x.ndim == 4 else np.repeat(x[..., None], 3, axis=3)
