"""How well a set of cards stands in for the images that its network learnt from, while those images are there.

In the latents of that network: FLSD, the Frechet distance between cards and images; precision and recall; diversity,
the spread of the cards over that of the images. In pixels: whether training images show (`engine.privacy`).
"""

import json
import math
import time
from collections.abc import Callable

import numpy as np
import torch

from engine import gaussian
from engine.data import Images, hold_out, load_images
from engine.errors import CardsUnfit, DatasetUnfit, Diverged, Stopped
from engine.evaluate import HELD_OUT_SEED, HELD_OUT_SHARE, METRICS
from engine.files import write_whole
from engine.models import chunk_size
from engine.neighbours import K, even, precision_recall
from engine.pictures import save_neighbours
from engine.privacy import measure_privacy, plan
from engine.probe import forward_unverified
from engine.weights import load_network
from engine.work import Outcome, Product, Report, Work
from flashcards.contract.resources import Progress
from flashcards.contract.results import EvaluateCardsResult, Privacy

MOST_LATENTS = 5000
MOST_NUMBERS = 2**23  # of the latents of a sample: long ones make a smaller sample
MOST_NEIGHBOURS = 3000
FEWEST = K + 1  # a point and its neighbours
FLATTEST = 1e-12  # spread below which all latents are one


@torch.inference_mode()
def evaluate_cards(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    began = time.monotonic()
    model, device = work.model, torch.device(work.device)
    network = load_network(model, device)
    unverified = forward_unverified(network, model, device)
    cards, splits = _load_cards(work), _load_splits(work, report)
    split, images, rows = _choose(work, splits, report)
    chunk = chunk_size(model.architecture, model.input)

    most = min(MOST_LATENTS, max(FEWEST, MOST_NUMBERS // math.prod(model.architecture.latent_shape(model.input))))
    card_rows, image_rows = even(len(cards), most), rows[even(len(rows), most)]
    pace = Pace(report, stop, len(card_rows) + len(image_rows), _searches(cards, splits))
    z_cards_ND = _encode(network, cards, card_rows, chunk, device, pace.after_encoding)
    z_images_ND = _encode(network, images, image_rows, chunk, device, pace.after_encoding)
    _refuse_infinite(z_cards_ND, "cards")
    _refuse_infinite(z_images_ND, "images")
    if gaussian.spread(z_images_ND) < FLATTEST:
        raise DatasetUnfit("the network has one and the same latent for all of these images: nothing can be compared")

    near = [z_ND[even(len(z_ND), MOST_NEIGHBOURS)] for z_ND in (z_cards_ND, z_images_ND)]
    precision, recall = precision_recall(*(torch.from_numpy(z_ND).to(device) for z_ND in near))
    privacy, products = _look_for_training_images(work, cards, splits, report, pace)
    result = EvaluateCardsResult(
        forward_unverified=unverified,
        split=split,
        cards=len(card_rows),
        images=len(image_rows),
        flsd=gaussian.between(z_cards_ND, z_images_ND),
        precision=precision,
        recall=recall,
        diversity=gaussian.spread(z_cards_ND) / gaussian.spread(z_images_ND),
        privacy=privacy,
        seconds=time.monotonic() - began,
    )
    measured = result.model_dump(mode="json", exclude={"flashcards", "dataset"})
    write_whole(work.out / METRICS.name, json.dumps(measured, indent=2).encode())
    return Outcome(result, [METRICS, *products])


def _load_cards(work: Work) -> Images:
    try:
        cards_NHWC = np.load(work.cards.path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise CardsUnfit(f"the file of the cards cannot be read: {error}") from error
    if cards_NHWC.dtype not in (np.uint8, np.float32) or cards_NHWC.ndim != 4:
        held = f"{cards_NHWC.dtype} with {cards_NHWC.ndim} axes"
        raise CardsUnfit(f"cards are uint8 or float32, N x H x W x C, and the file holds {held}")
    cards = Images(cards_NHWC, work.model.range)
    if cards.shape != work.model.input:
        raise CardsUnfit(f"the network takes images of {work.model.input}; the cards are {cards.shape}")
    if len(cards) < FEWEST:
        raise CardsUnfit(f"there are {len(cards)} cards; at least {FEWEST} are needed, a card and {K} neighbours")
    return cards


def _load_splits(work: Work, report: Report) -> dict[str, Images]:
    splits = {}
    for split in ("train", "test"):
        images = load_images(work.dataset.path, split, work.model.range)
        if images is None or not len(images):
            continue
        if images.shape != work.model.input:
            raise DatasetUnfit(f"the network takes images of {work.model.input}; these are {images.shape}")
        if (words := images.stray()) is not None:
            report.note(words)
        splits[split] = images
    return splits


def _choose(work: Work, splits: dict[str, Images], report: Report) -> tuple[str, Images, np.ndarray]:
    """The split that was asked for, under the name the result gives it."""
    asked = ("test", "train") if work.spec.split == "auto" else (work.spec.split,)
    split = next((name for name in asked if name in splits), None)
    if split is None:
        raise DatasetUnfit(f"the dataset has no images in split {' or '.join(asked)}")
    images = splits[split]
    name, rows = split, np.arange(len(images))
    if work.spec.split == "auto" and split == "train":
        report.note("the dataset has no test split: the cards are held against a tenth of train")
        name, (_, rows) = "held_out", hold_out(len(images), HELD_OUT_SHARE, HELD_OUT_SEED)
    if len(rows) < FEWEST:
        count = f"{len(rows)} image{'' if len(rows) == 1 else 's'}"
        raise DatasetUnfit(f"split {name} has {count}; at least {FEWEST} are needed, an image and {K} neighbours")
    return name, images, rows


def _searches(cards: Images, splits: dict[str, Images]) -> int:
    """Pairs of card and image that privacy will look at."""
    if len(splits) < 2:
        return 0
    card_rows, *image_rows = plan(cards, splits["train"], splits["test"])
    return len(card_rows) * sum(len(rows) for rows in image_rows)


def _look_for_training_images(
    work: Work, cards: Images, splits: dict[str, Images], report: Report, pace: "Pace"
) -> tuple[Privacy | None, list[Product]]:
    if len(splits) < 2:
        report.note(
            "privacy was not measured: it takes training images and images that were not learnt from, and the dataset "
            "has one split only; upload x_train and x_test in one npz, or folders train and test"
        )
        return None, []
    train, held_out = splits["train"], splits["test"]
    privacy, near = measure_privacy(cards, train, held_out, torch.device(work.device), pace.after_search)
    if privacy.copies:
        report.note(privacy.verdict)
    first = np.argsort(near.to_train_N, kind="stable")  # the most telling cards
    shown = [(cards, near.card_N[first]), (train, near.train_N[first]), (held_out, near.held_out_N[first])]
    return privacy, [save_neighbours(work.out, shown)]


def _encode(
    network: torch.nn.Module,
    images: Images,
    rows: np.ndarray,
    chunk: int,
    device: torch.device,
    after_chunk: Callable[[int], None],
) -> np.ndarray:
    parts = []
    for first in range(0, len(rows), chunk):
        x_BCHW = images.batch(rows[first : first + chunk], device)
        parts.append(network.encoder(x_BCHW).flatten(1).cpu().numpy())
        after_chunk(len(x_BCHW))
    return np.concatenate(parts)


def _refuse_infinite(z_ND: np.ndarray, what: str) -> None:
    infinite = int((~np.isfinite(z_ND).all(1)).sum())
    if infinite:
        raise Diverged(
            f"{infinite} of {len(z_ND)} {what} have latents that are not finite: look at the weights of the network, "
            f"and whether the {what} are finite themselves"
        )


class Pace:
    """Encoding and searching take a share of the time each, and every block of either asks whether to stop."""

    ENCODING = 0.5

    def __init__(self, report: Report, stop: Callable[[], bool], images: int, pairs: int) -> None:
        self.report, self.stop, self.images, self.pairs = report, stop, images, pairs
        self.encoded = self.searched = 0
        self.began = time.monotonic()

    def after_encoding(self, images: int) -> None:
        self.encoded += images
        self._tell()

    def after_search(self, pairs: int) -> None:
        self.searched += pairs
        self._tell()

    def _tell(self) -> None:
        if self.stop():
            raise Stopped(f"stopped after {self.encoded} of {self.images} cards and images")
        share = self.ENCODING if self.pairs else 1.0
        fraction = share * self.encoded / self.images + (1 - share) * self.searched / max(1, self.pairs)
        seconds = max(time.monotonic() - self.began, 1e-9)
        self.report.progress(
            Progress(
                fraction=fraction,
                step=self.encoded,
                steps=self.images,
                rate=None if self.searched else self.encoded / seconds,
                unit="images",
                eta_seconds=seconds * (1 - fraction) / fraction,
            )
        )
