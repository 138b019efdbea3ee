import numpy as np
import pytest
import torch

from engine.data import Images
from engine.privacy import measure_privacy

CPU = torch.device("cpu")
ENDS = (0.0, 1.0)


@pytest.fixture
def measure(digits):
    def measure(cards: np.ndarray, train: np.ndarray | None = None, held_out: np.ndarray | None = None):
        train = digits["x_train"][:300] if train is None else train
        held_out = digits["x_test"] if held_out is None else held_out
        return measure_privacy(*(Images(x[..., None], ENDS) for x in (cards, train, held_out)), CPU)

    return measure


@pytest.fixture
def others(digits):
    """Digits that stand on neither side."""
    return digits["x_train"][700:900]


def test_copies_of_training_images_are_warned_about(measure, digits):
    privacy, near = measure(digits["x_train"][:100])
    assert privacy.verdict.startswith("Warning: 100 cards are almost equal to a training image")
    assert "proves nothing about other attacks" in privacy.verdict
    assert (privacy.copies, privacy.closest) == (100, 0.0)
    assert privacy.ratio < 0.5
    assert near.train_N.tolist() == list(range(100))


def test_one_copy_among_many_cards_is_enough(measure, digits, others):
    others = others.copy()
    others[50] = digits["x_train"][299]
    others[50, 0, 0] += 5
    privacy, near = measure(others)
    assert privacy.verdict.startswith("Warning: 1 card is almost equal")
    assert privacy.closest == pytest.approx(5 / 255 / 8, rel=1e-4)
    assert near.to_train_N.argmin() == 50


def test_cards_that_are_like_both_sides_are_no_sign(measure, others):
    noisy = others / np.float32(255) + np.random.default_rng(0).normal(0, 0.05, others.shape).astype(np.float32)
    privacy, _ = measure(noisy)
    assert privacy.verdict.startswith("No sign that training images show. Measured: ")
    assert "proves nothing about other attacks" in privacy.verdict
    assert privacy.ratio == pytest.approx(1, abs=0.05)
    low, high = privacy.interval
    assert low < privacy.ratio < high


def test_copies_of_held_out_images_are_no_sign(measure, digits):
    privacy, _ = measure(digits["x_test"][:100])
    assert privacy.copies == 0
    assert privacy.ratio > 1
    assert privacy.verdict.startswith("No sign")


def test_training_images_that_shine_through_are_told(measure, digits):
    noise = np.random.default_rng(0).normal(0, 0.15, (200, 8, 8)).astype(np.float32)
    privacy, _ = measure(digits["x_train"][:200] / np.float32(255) + noise)
    assert privacy.copies == 0
    assert privacy.interval[1] < 0.95
    assert privacy.verdict.startswith("Cards lie closer to what was learnt than chance")


def test_the_larger_side_has_no_advantage(measure, digits, others):
    few = digits["x_test"][:20]
    privacy, _ = measure(others, train=digits["x_train"][:600], held_out=few)
    assert (privacy.cards, privacy.images) == (200, 20)
    with_all, _ = measure(others, train=few, held_out=digits["x_train"][:600:30])
    assert privacy.ratio == pytest.approx(1 / with_all.ratio, rel=1e-6)
    assert privacy.verdict.startswith("No sign")


def test_a_picture_that_both_sides_share_is_no_copy(measure, digits, others):
    white = np.full((1, 8, 8), 255, np.uint8)
    train, held_out = np.concatenate([digits["x_train"][:99], white]), np.concatenate([digits["x_test"][:99], white])
    privacy, _ = measure(np.concatenate([others, white]), train, held_out)
    assert (privacy.closest, privacy.copies) == (0.0, 0)


def test_many_cards_of_one_kind_count_as_one(measure, others):
    """Collapsed cards have an interval of no width; that half a hundred say the same is no sign of anything."""
    signs = [measure(np.repeat(others[i : i + 1], 50, 0))[0] for i in range(20)]
    assert all(privacy.interval[0] == pytest.approx(privacy.interval[1]) for privacy in signs)
    assert sum(privacy.ratio < 0.98 for privacy in signs) > 4
    assert sum("closer" in privacy.verdict for privacy in signs) < 3


def test_the_same_cards_get_the_same_answer(measure, others):
    assert measure(others)[0] == measure(others)[0]
