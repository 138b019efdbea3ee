"""Real images for reports and benches: npz files in the folder that FLASHCARDS_DATA names, prepared as in the paper.

mnist.npz, fashion_mnist.npz, cifar10.npz, ...: x_train and x_test, uint8. Grey images are brought to 32x32 bilinearly
and their channel is copied to three.
"""

import os
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 32


def data_folder() -> Path:
    named = os.environ.get("FLASHCARDS_DATA")
    if not named:
        raise SystemExit("FLASHCARDS_DATA names no folder: set it to one that holds mnist.npz, cifar10.npz, ...")
    return Path(named)


def prepare(source: Path, target: Path, images: int, tests: int, side: int = SIDE) -> None:
    """The first images of each split, as an npz that a training takes."""
    with np.load(source, allow_pickle=False) as arrays:
        found = {split: arrays[f"x_{split}"][:count] for split, count in (("train", images), ("test", tests))}
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = target.with_suffix(".part.npz")
    np.savez(whole, **{f"x_{split}": _in_colour(_resized(x, side)) for split, x in found.items()})
    whole.replace(target)


def _resized(x: np.ndarray, side: int) -> np.ndarray:
    if x.shape[1:3] == (side, side):
        return x
    sized = [Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR) for image in x]
    return np.stack([np.asarray(image) for image in sized])


def _in_colour(x: np.ndarray) -> np.ndarray:
    return x if x.ndim == 4 else np.repeat(x[..., None], 3, axis=3)
