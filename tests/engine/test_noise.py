import pytest
import torch

from engine.noise import Noise, seen_through


def test_noise_has_the_deviation_it_was_given():
    x = torch.zeros(50, 3, 8, 8)
    noisy = Noise(0.1, (-1.0, 1.0), clip=True).add(x, torch.Generator().manual_seed(0))
    assert noisy.std().item() == pytest.approx(0.1, rel=0.02)


def test_it_is_cut_to_the_range_where_that_is_asked():
    x, draw = torch.ones(50, 1, 8, 8), torch.Generator
    assert Noise(0.5, (0.0, 1.0), clip=True).add(x, draw().manual_seed(0)).max() == 1
    assert Noise(0.5, (0.0, 1.0), clip=False).add(x, draw().manual_seed(0)).max() > 1


def test_what_is_measured_sees_the_same_noise_every_time():
    x, noise = torch.zeros(4, 1, 8, 8), Noise(0.1, (0.0, 1.0), clip=False)
    one, other = seen_through(noise, lambda seen: seen), seen_through(noise, lambda seen: seen)
    first = one(x)
    assert torch.equal(first, other(x))
    assert torch.equal(first, noise.fixed(x))
    assert not torch.equal(first, one(x))
    assert seen_through(None, torch.neg) is torch.neg
