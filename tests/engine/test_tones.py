import numpy as np
import pytest
import torch

from engine.tones import tones_between

PLACES = (np.arange(64) + 0.5) / 64


def images(values) -> torch.Tensor:
    """N images of 4 x 4 pixels and one channel."""
    return torch.as_tensor(np.asarray(values, np.float32)).reshape(-1, 1, 4, 4)


def test_values_get_the_distribution_of_the_data():
    drawn = np.random.default_rng(0).uniform(0.2, 0.6, 16_000)
    tones = tones_between(images(drawn), (PLACES**2)[None])  # data that is u^2, u uniform
    assert np.quantile(tones.match(images(drawn)).numpy(), [0.25, 0.5, 0.75]) == pytest.approx(
        [0.0625, 0.25, 0.5625], abs=0.01
    )


def test_the_order_of_values_stays_and_equal_ones_stay_equal():
    drawn = np.round(np.random.default_rng(1).uniform(0, 1, 1600), 2)
    matched = tones_between(images(drawn), np.sort(PLACES**3)[None]).match(images(drawn)).numpy().ravel()
    order = np.argsort(drawn, kind="stable")
    assert (np.diff(matched[order]) >= -1e-7).all()
    assert all(np.ptp(matched[drawn == value]) == 0 for value in np.unique(drawn)[:20])


def test_what_lies_beyond_the_cards_that_were_looked_at_gets_the_last_tone():
    tones = tones_between(images(np.linspace(0.4, 0.6, 1600)), PLACES[None])
    assert tones.match(images(np.full(16, 0.9))).unique().item() == pytest.approx(PLACES[-1])
    assert tones.match(images(np.full(16, 0.1))).unique().item() == pytest.approx(PLACES[0])


def test_each_channel_has_its_own():
    x_NCHW = torch.rand(64, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    matched = tones_between(x_NCHW, np.stack([PLACES / 2, 0.5 + PLACES / 2])).match(x_NCHW)
    assert matched[:, 0].max() <= 0.5 <= matched[:, 1].min()


def test_cards_that_are_one_flat_colour_get_the_middle_of_the_data():
    flat = images(np.full(160, 0.3))
    assert tones_between(flat, PLACES[None]).match(flat).unique().item() == pytest.approx(0.5)
