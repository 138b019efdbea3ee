import numpy as np
import pytest
import torch

from engine.data import Images
from engine.measures import mean_error
from engine.retrain import retrain
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.specs import LearningSpec

CPU = torch.device("cpu")


@pytest.fixture
def cards(digits):
    return Images(digits["x_train"][:70, :, :, None], (0.0, 1.0))


def taught(cards, epochs, after_batch=lambda epoch: None):
    spec = LearningSpec(architecture=BlkArchitecture(blocks=1, filters=4), epochs=epochs, seed=2)
    return retrain(spec, cards, CPU, after_batch)


@pytest.mark.slow
def test_more_epochs_teach_more(cards):
    few, many = (mean_error(taught(cards, epochs), cards, np.arange(70), 64, CPU) for epochs in (1, 60))
    assert many < 0.8 * few


def test_the_same_seed_gives_the_same_network(cards):
    one, same = taught(cards, 2).state_dict(), taught(cards, 2).state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)


def test_every_batch_is_told_by_its_epoch(cards):
    told = []
    taught(cards, 3, told.append)
    assert told == [1, 1, 2, 2, 3, 3]
