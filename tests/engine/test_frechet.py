import numpy as np
import pytest

from engine.gaussian import between


def test_the_distance_of_two_samples_on_a_line():
    """There the Frechet distance is (m1 - m2)^2 + (s1 - s2)^2."""
    a, b = np.array([[0.0], [2.0], [4.0]]), np.array([[10.0], [11.0], [12.0]])
    assert between(a, b) == pytest.approx(9**2 + (2 - 1) ** 2, rel=1e-5)


def test_directions_that_do_not_meet_have_nothing_in_common():
    """Along the axes: the squared deviations add up where only one of the two samples has any."""
    a, b = np.diag([3.0, 0.0])[[0, 0, 1, 1]], np.diag([0.0, 3.0])[[0, 0, 1, 1]]
    means = 2 * 1.5**2
    assert between(a, a) == pytest.approx(0, abs=1e-4)
    assert between(a, b) == pytest.approx(means + a.var(0, ddof=1).sum() + b.var(0, ddof=1).sum(), rel=1e-2)


def test_long_latents_and_short_ones_are_measured_alike():
    """A latent padded with zeros is longer than the sample is large, and as far from the others as before."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, (60, 5)), rng.normal(0.3, 2, (80, 5))
    padded = [np.pad(z, ((0, 0), (0, 200))) for z in (a, b)]
    assert between(*padded) == pytest.approx(between(a, b), rel=1e-3)
