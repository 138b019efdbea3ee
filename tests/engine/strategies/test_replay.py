import numpy as np
import pytest
import torch

from engine.aims import Reconstruct
from engine.data import Images
from engine.resume import Standing
from engine.strategies.base import Strategy
from engine.strategies.replay import Replay, derived_seed, shares


def numbered(count: int) -> Images:
    """Image i is full of i."""
    return Images(
        np.broadcast_to(np.arange(count, dtype=np.float32)[:, None, None, None], (count, 2, 2, 1)).copy(), (0, 1)
    )


def in_order(replay: Replay, epoch: int, train_images: int) -> list[int]:
    replay.begin_epoch(epoch, train_images)
    starts = range(0, train_images, replay.batch_size)
    counts = [min(replay.batch_size, train_images - first) for first in starts]
    batches = [replay.batch(number, count, torch.device("cpu")) for number, count in enumerate(counts)]
    assert [len(batch) for batch in batches] == counts
    return torch.cat(batches)[:, 0, 0, 0].int().tolist()


def test_shares_are_equal():
    assert shares(10, 3) == [4, 3, 3]
    assert shares(2, 3) == [1, 1, 0]


def test_seeds_differ_from_place_to_place():
    seeds = {derived_seed(0, task, epoch) for task in range(1, 6) for epoch in range(1, 6)}
    assert len(seeds) == 25
    assert all(seed < 2**63 for seed in seeds)


def test_few_old_ones_come_equally_often():
    seen = in_order(Replay(numbered(5), 0, 4), epoch=1, train_images=20)
    assert sorted(seen) == sorted([*range(5)] * 4)


def test_of_many_old_ones_every_epoch_has_others():
    replay = Replay(numbered(50), 0, 4)
    one, other = in_order(replay, 1, 10), in_order(replay, 2, 10)
    assert len(set(one)) == len(set(other)) == 10
    assert one != other
    assert in_order(replay, 1, 10) == one


def test_a_batch_may_have_more_or_fewer_old_ones_than_new_ones():
    twice = Replay(numbered(40), 0, 4, ratio=2.0)
    twice.begin_epoch(1, train_images=10)
    assert [len(twice.rows(number, count)) for number, count in enumerate((4, 4, 2))] == [8, 8, 4]
    assert len({int(row) for number in range(3) for row in twice.rows(number, 4)}) == 24  # none of them twice


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.5, 1 / 3, 0.99, 1.5, 8])
@pytest.mark.parametrize("batch", [1, 3, 16])
def test_every_batch_finds_an_old_one_whatever_the_ratio(ratio, batch):
    for train_images in (1, 10, 33):
        replay = Replay(numbered(3), 0, batch, ratio)
        replay.begin_epoch(1, train_images)
        for number, first in enumerate(range(0, train_images, batch)):
            count = min(batch, train_images - first)
            assert len(replay.rows(number, count)) == max(1, round(count * ratio))


class Spy:
    """Answers with zeros, and remembers what it saw."""

    def in_training(self, x_BCHW, generator):
        self.saw = x_BCHW
        return torch.zeros_like(x_BCHW), 0.0


def test_a_batch_has_as_many_old_as_new_ones_and_both_are_scored():
    strategy = Strategy()
    strategy.network, strategy.generator, strategy.noise = Spy(), None, None
    strategy.score = Reconstruct().score
    strategy.replay, strategy.weight, strategy.train_images = Replay(numbered(8), 0, 4), 0.5, 8
    strategy.begin_epoch(1)
    new = torch.full((4, 1, 2, 2), -3.0)
    loss, error = strategy.loss(new, new, Standing(batch=1))
    assert len(strategy.network.saw) == 8
    assert (strategy.network.saw[:4] == -3).all()
    old = strategy.network.saw[4:]
    assert error == 3
    assert loss == 3 + 0.5 * old.mean()
