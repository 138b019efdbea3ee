"""What cards are held against: the images of a dataset while it is there, else the capsule that was kept of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine import gaussian
from engine.data import Images, hold_out, load_images
from engine.errors import DatasetUnfit, Diverged
from engine.evaluate import HELD_OUT_SEED, HELD_OUT_SHARE
from engine.gaussian import Gaussian, spread
from engine.hashing import keys
from engine.measures import mae_B
from engine.work import Report, Work
from flashcards.contract.capsule import Capsule
from flashcards.contract.meter import DENSE_MOST, Meter

MOST = 5000  # images that are looked at
MOST_NUMBERS = 2**26  # in their latents, which are all kept in memory
LANE = 3  # of latents drawn to be looked at, other ones than those that cards start from


@dataclass(frozen=True)
class Reference:
    against: str
    around: Gaussian
    eps1: float
    spread: float
    some: Callable[[int], np.ndarray]  # up to so many latents, to show


@dataclass(frozen=True)
class Data:
    train: Images
    train_rows: np.ndarray
    test: Images
    test_rows: np.ndarray


def load_data(work: Work, latent_size: int, report: Report) -> Data:
    train = _load(work, "train", report)
    if train is None:
        raise DatasetUnfit(
            "the dataset has no training images to hold cards against: it needs an array named x_train or x"
        )
    if len(train) < 2:
        raise DatasetUnfit(f"the dataset has {len(train)} training image(s); a distribution takes at least 2")
    rows = evenly(len(train), min(MOST, max(2, MOST_NUMBERS // latent_size)))
    if len(rows) < len(train):
        report.note(f"held against {len(rows):,} of the {len(train):,} training images, evenly chosen")
    test = _load(work, "test", report)
    if test is not None and len(test):
        return Data(train, rows, test, np.arange(len(test)))
    report.note(
        "the dataset has no test split: tested on a tenth of train, the one that a training with seed 0 holds out; a "
        "network trained on these images with another seed has seen most of them"
    )
    return Data(train, rows, train, hold_out(len(train), HELD_OUT_SHARE, HELD_OUT_SEED)[1])


def _load(work: Work, split: str, report: Report) -> Images | None:
    images = load_images(work.dataset.path, split, work.model.range)
    if images is None:
        return None
    if images.shape != work.model.input:
        raise DatasetUnfit(f"the network takes images of {work.model.input}; those of split {split} are {images.shape}")
    if (words := images.stray()) is not None:
        report.note(words)
    return images


@torch.inference_mode()
def of_images(
    network: torch.nn.Module, data: Data, chunk: int, device: torch.device, between: Callable[[], None]
) -> Reference:
    meter, latents, errors = Meter(), [], []
    for first in range(0, len(data.train_rows), chunk):
        x_BCHW = data.train.batch(data.train_rows[first : first + chunk], device)
        z = network.encoder(x_BCHW)
        error_B = mae_B(x_BCHW, network.decoder(z)).cpu().numpy()
        if not np.isfinite(error_B).all():
            raise Diverged("the network gives no finite answer to images of the dataset: look at its weights")
        latents.append(z.flatten(1).cpu().numpy())
        errors.append(error_B)
        if latents[0].shape[1] > DENSE_MOST:
            meter.add(latents[-1], error_B, x_BCHW.cpu().numpy(), channel_axis=1)
        between()
    z_ND = np.concatenate(latents)
    # A covariance of long latents would not fit: then a few directions and a diagonal stand for it, as in a capsule.
    around = (
        gaussian.of_capsule(meter.capsule())
        if meter.count
        else gaussian.from_moments(z_ND.mean(0, dtype=np.float64), np.atleast_2d(np.cov(z_ND, rowvar=False)))
    )
    return Reference(
        against="dataset",
        around=around,
        eps1=float(np.concatenate(errors).min()),
        spread=spread(z_ND),
        some=lambda most: z_ND[evenly(len(z_ND), most)],
    )


def of_capsule(capsule: Capsule, seed: int) -> Reference:
    around = gaussian.of_capsule(capsule)
    return Reference(
        against="capsule",
        around=around,
        eps1=capsule.facts.eps1,
        spread=float(np.sqrt(2 * capsule.total_variance())),
        some=lambda most: around.draw(keys(seed, 0, most), LANE),
    )


def evenly(count: int, most: int) -> np.ndarray:
    """Up to `most` of the rows 0 .. count-1, at equal distances: datasets are often sorted by class."""
    return np.arange(count) if count <= most else np.arange(most) * count // most
