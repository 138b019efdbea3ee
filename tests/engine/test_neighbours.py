import numpy as np
import pytest
import torch

from engine import neighbours
from engine.data import Images
from engine.neighbours import even, nearest_images, precision_recall

CPU = torch.device("cpu")


def on_a_line(*places: float) -> torch.Tensor:
    return torch.tensor(places)[:, None]


@pytest.mark.parametrize(
    ("count", "most", "rows"), [(3, 5, [0, 1, 2]), (10, 5, [0, 2, 4, 6, 8]), (7, 3, [0, 2, 4]), (0, 3, [])]
)
def test_even_rows(count, most, rows):
    assert even(count, most).tolist() == rows


def test_precision_and_recall_by_hand():
    # The third neighbours of 0, 1, 2, 3 are 3, 2, 2 and 3 away: their balls cover -3 .. 6, ends included.
    images = on_a_line(0, 1, 2, 3)
    # Those of the cards are 95, 94, 91 and 95 away, and that of the last covers 5 .. 195.
    cards = on_a_line(5, 6, 9, 100)
    assert precision_recall(cards, images) == (0.5, 1.0)
    # Cards in one place cover that place alone.
    assert precision_recall(on_a_line(2, 2, 2, 2), images) == (1.0, 0.25)
    assert precision_recall(on_a_line(50, 51, 52, 53), images) == (0.0, 0.0)


def test_a_set_covers_itself():
    z = torch.from_numpy(np.random.default_rng(0).normal(1000, 1, (700, 5)).astype(np.float32))
    assert precision_recall(z, z) == (1.0, 1.0)
    copies = z[:1].expand(10, 5)
    assert precision_recall(copies, copies) == (1.0, 1.0)


def test_blocks_do_not_change_the_answer(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    cards, images = torch.randn(60, 3, generator=generator), torch.randn(80, 3, generator=generator) + 1
    whole = precision_recall(cards, images)
    assert 0 < whole[0] < 1
    assert 0 < whole[1] < 1
    monkeypatch.setattr(neighbours, "BLOCK", 7)
    assert precision_recall(cards, images) == whole


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.0, 1.0)])
def test_the_nearest_image_is_found_and_measured_in_units_of_the_range(monkeypatch, ends):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (50, 4, 4, 3), np.uint8)
    cards = rng.integers(0, 256, (20, 4, 4, 3), np.uint8)
    cards[3] = x[17]
    far_NM = np.sqrt(((cards[:, None] / 255.0 - x[None] / 255.0) ** 2).mean((2, 3, 4)))
    monkeypatch.setattr(neighbours, "BLOCK_NUMBERS", 48 * 6)
    rows = np.arange(5, 50)
    found, far = nearest_images(Images(cards, ends), np.arange(20), Images(x, ends), rows, CPU)
    assert found.tolist() == (5 + far_NM[:, 5:].argmin(1)).tolist()
    assert far == pytest.approx(far_NM[:, 5:].min(1), abs=1e-6)
    assert (found[3], far[3]) == (17, 0.0)
