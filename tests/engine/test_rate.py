import pytest
import torch

from engine.resume import Training
from flashcards.contract.image import ImageShape
from flashcards.contract.specs import LearningSpec

SMALL = "blk_1_fil_4"


def rates(epochs: int, batches: int, **asked: float) -> list[float]:
    spec = LearningSpec(architecture=SMALL, epochs=epochs, learning_rate=0.1, **asked)
    training = Training.begin(spec, spec.architecture, ImageShape(8, 8, 1), torch.device("cpu"))
    found = []
    for epoch in range(1, epochs + 1):
        for batch in range(batches):
            training.now.epoch, training.now.batch = epoch, batch
            found.append(training.set_rate(spec, batches))
            assert training.optimizer.param_groups[0]["lr"] == found[-1]
    return found


def test_it_stays_and_then_falls_to_nothing():
    assert rates(2, 4, decay=0.5) == pytest.approx([0.1, 0.1, 0.1, 0.1, 0.1, 0.075, 0.05, 0.025])


def test_it_may_fall_from_the_start():
    assert rates(1, 4, decay=1) == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_it_may_stay():
    assert rates(2, 2, decay=0) == [0.1] * 4
