"""Do training images show in cards? Nearest-neighbour distances in pixel space, to what was learnt and what was not.

A network that is iterated can come to rest on the very images it learnt from (Radhakrishnan, Belkin and Uhler,
"Overparameterized neural networks implement associative memory", PNAS 2020). Cards that do so lie closer to training
images than to other images of the same kind. That is measured here, while the data is there, and nothing else is: no
privacy follows from it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.data import Images
from engine.neighbours import even, nearest_images
from flashcards.contract.results import Privacy

MOST_CARDS, MOST_IMAGES = 2000, 5000
MOST_WORK = 2**39  # multiplications for one search, about ten seconds on two cores; large images get fewer neighbours

RESAMPLES, SEED = 200, 0
ENDS = (0.025, 0.975)
# Which images happen to lie on which side moves the ratio too, and a bootstrap over cards does not see that. Among
# handwritten digits no network had seen, split at random, the ratio had a deviation of 0.2 / sqrt(n), n being how many
# images serve as somebody's nearest: 0.01 for 400, 0.2 for one. Two deviations are allowed for, and 0.02 at least:
# 28 of 1,600 such splits then gave a false sign, nearly all of them where every card was one and the same.
SLACK, CHANCE = 0.02, 0.4
COPY = 0.01  # of the range: two or three steps of 255, which no eye tells apart
COPY_APART = 3.0  # and the nearest image that was not learnt is so many times as far: it is no picture that many share


@dataclass(frozen=True)
class Neighbours:
    """Of each card that was looked at: the nearest of all training images, and the nearest held-out one."""

    card_N: np.ndarray
    train_N: np.ndarray
    held_out_N: np.ndarray
    to_train_N: np.ndarray


def plan(cards: Images, train: Images, held_out: Images) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows: of cards; of as many training images as held-out ones; of the training images to look for copies in."""
    card_rows = even(len(cards), MOST_CARDS)
    affordable = max(1, MOST_WORK // (len(card_rows) * cards.shape.pixels))
    each = min(len(train), len(held_out), MOST_IMAGES, affordable)
    return card_rows, even(len(train), each), even(len(held_out), each), even(len(train), max(each, affordable))


def measure_privacy(
    cards: Images,
    train: Images,
    held_out: Images,
    device: torch.device,
    after_block: Callable[[int], None] = lambda done: None,
) -> tuple[Privacy, Neighbours]:
    card_rows, train_rows, held_out_rows, searched = plan(cards, train, held_out)
    nearest_train, to_train = nearest_images(cards, card_rows, train, train_rows, device, after_block)
    nearest_held_out, to_held_out = nearest_images(cards, card_rows, held_out, held_out_rows, device, after_block)
    # Distances are compared among equal numbers, but a copy may be of any training image.
    copied, to_copied = nearest_images(cards, card_rows, train, searched, device, after_block)

    copies = int(((to_copied < COPY) & (to_held_out >= np.maximum(COPY_APART * to_copied, COPY))).sum())
    interval = _interval(to_train, to_held_out)
    privacy = Privacy(
        cards=len(card_rows),
        images=len(train_rows),
        to_train=float(to_train.mean()),
        to_held_out=float(to_held_out.mean()),
        ratio=float(_ratio(to_train, to_held_out)),
        interval=interval,
        closest=float(to_copied.min()),
        copies=copies,
        verdict=_verdict(copies, len(card_rows), len(train_rows), interval, _slack(nearest_train)),
    )
    return privacy, Neighbours(card_rows, copied, nearest_held_out, to_copied)


def _ratio(to_train: np.ndarray, to_held_out: np.ndarray) -> np.ndarray:
    """Of the means; where cards equal images on both sides, 1."""
    tiny = 1e-9
    return (to_train.mean(-1) + tiny) / (to_held_out.mean(-1) + tiny)


def _interval(to_train_N: np.ndarray, to_held_out_N: np.ndarray) -> tuple[float, float]:
    count = len(to_train_N)
    rows = np.random.Generator(np.random.Philox(key=[SEED, 0])).integers(0, count, (RESAMPLES, count))
    low, high = np.quantile(_ratio(to_train_N[rows], to_held_out_N[rows]), ENDS)
    return float(low), float(high)


def _slack(nearest_N: np.ndarray) -> float:
    """Cards that have collapsed share their nearest image: however many, they say no more than one would."""
    _, times = np.unique(nearest_N, return_counts=True)
    serving = len(nearest_N) ** 2 / (times**2).sum()  # how many, were all nearest equally often
    return max(SLACK, CHANCE / np.sqrt(serving))


def _verdict(copies: int, cards: int, images: int, interval: tuple[float, float], slack: float) -> str:
    low, high = interval
    measured = (
        f"Measured: distances in pixels of {cards} cards to {images} training and {images} held-out images, ratio "
        f"between {low:.3f} and {high:.3f}. It proves nothing about other attacks on the cards or on the network."
    )
    if copies:
        some = "1 card is" if copies == 1 else f"{copies} cards are"
        return (
            f"Warning: {some} almost equal to a training image and to no held-out one: training images show. Treat "
            f"the cards as you would treat the data. {measured}"
        )
    if high < 1 - slack:
        return f"Cards lie closer to what was learnt than chance would have it. {measured}"
    return f"No sign that training images show. {measured}"
