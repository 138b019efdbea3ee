"""Old samples beside new ones: each batch gets as many of the old as it has of the new, or `ratio` times as many."""

import math

import numpy as np
import torch

from engine.data import Images, shuffled
from engine.hashing import keys

OWN_STREAM = 2**32  # away from the numbers of tasks: the order of old samples is no echo of that of the new


def derived_seed(seed: int, *places: int) -> int:
    """Another seed for each of these places, within the 63 bits of the contract."""
    for place in places:
        seed = int(keys(seed, place, 1)[0]) >> 1
    return seed


def shares(count: int, tasks: int) -> list[int]:
    """Equal ones, the earliest tasks getting what is left over."""
    return [count // tasks + (task < count % tasks) for task in range(tasks)]


class Replay:
    def __init__(self, images: Images, seed: int, batch_size: int, ratio: float = 1.0) -> None:
        self.images, self.batch_size, self.ratio = images, batch_size, ratio
        self.seed = derived_seed(seed, OWN_STREAM)

    def begin_epoch(self, epoch: int, train_images: int) -> None:
        """Shuffled anew as often as it takes to go beside all new images: a function of (seed, epoch) alone."""
        rounds = math.ceil(math.ceil(train_images * self.ratio) / len(self.images))
        orders = [shuffled(len(self.images), self.seed, epoch * rounds + number) for number in range(rounds)]
        self.order = np.concatenate(orders)

    def rows(self, number: int, count: int) -> np.ndarray:
        """Which of the old samples stand beside batch `number` of this epoch."""
        first = int(number * self.batch_size * self.ratio)  # down, so that the last batch of an epoch finds some too
        return self.order[first : first + max(1, round(count * self.ratio))]

    def batch(self, number: int, count: int, device: torch.device) -> torch.Tensor:
        return self.images.batch(self.rows(number, count), device)
