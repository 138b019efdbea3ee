import numpy as np
import pytest
from scipy.linalg import sqrtm

from engine.gaussian import Gaussian, from_moments, of_sample, spread
from engine.hashing import keys


def by_the_book(z, mean, covariance):
    """|m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), with scipy's matrix root."""
    own = np.cov(z.T)
    root = np.real(sqrtm(own @ covariance))
    return ((z.mean(0) - mean) ** 2).sum() + np.trace(own + covariance - 2 * root)


@pytest.fixture
def chance():
    return np.random.default_rng(0)


def test_frechet_is_what_the_book_says(chance):
    mix, shift = chance.normal(size=(6, 6)), chance.normal(size=6)
    z = chance.normal(size=(500, 6)) @ mix + 1
    covariance = np.cov((chance.normal(size=(500, 6)) @ chance.normal(size=(6, 6))).T)
    assert from_moments(shift, covariance).frechet(z) == pytest.approx(by_the_book(z, shift, covariance), rel=1e-3)


def test_two_forms_of_one_gaussian_agree(chance):
    factor, diagonal = chance.normal(size=(3, 8)), chance.uniform(0.5, 1, 8)
    low_rank = Gaussian(np.zeros(8), factor_KD=factor, deviation_D=np.sqrt(diagonal))
    whole = from_moments(np.zeros(8), factor.T @ factor + np.diag(diagonal))
    z = chance.normal(size=(300, 8)) + 0.5
    assert low_rank.total_variance == pytest.approx(whole.total_variance, rel=1e-4)
    # The root of a covariance is not unique; the distance is.
    assert low_rank.frechet(z) == pytest.approx(whole.frechet(z), rel=1e-4)
    drawn = low_rank.draw(keys(1, 0, 20_000), lane=0)
    assert np.abs(np.cov(drawn.T) - (factor.T @ factor + np.diag(diagonal))).max() < 0.4


def test_draws_from_itself_are_close_and_others_are_not(chance):
    mix = chance.normal(size=(5, 5))
    own = from_moments(np.ones(5), mix @ mix.T)
    drawn = own.draw(keys(0, 0, 5000), lane=0)
    assert own.frechet(drawn) < 0.02 * own.total_variance
    assert own.frechet(drawn + 3) == pytest.approx(45, rel=0.1)
    assert own.frechet(np.repeat(drawn[:1], 100, axis=0)) > 0.9 * own.total_variance


def test_a_covariance_of_few_images_still_draws(chance):
    few = chance.normal(size=(3, 20))
    drawn = from_moments(few.mean(0), np.cov(few.T)).draw(keys(0, 0, 100), lane=0)
    assert np.isfinite(drawn).all()


def test_both_forms_are_widened_alike(chance):
    factor, diagonal = chance.normal(size=(3, 8)), chance.uniform(0.5, 1, 8)
    low_rank = Gaussian(np.zeros(8), factor_KD=factor, deviation_D=np.sqrt(diagonal)).widened(2)
    whole = from_moments(np.zeros(8), factor.T @ factor + np.diag(diagonal)).widened(2)
    z = chance.normal(size=(300, 8))
    assert whole.total_variance == pytest.approx((factor**2).sum() + diagonal.sum() + 8 * 4, rel=1e-4)
    assert low_rank.frechet(z) == pytest.approx(whole.frechet(z), rel=1e-4)


@pytest.mark.parametrize("count", [200, 4])
def test_a_sample_of_any_length_is_taken_for_a_gaussian(chance, count):
    z = chance.normal(size=(count, 6)) @ chance.normal(size=(6, 6)) + 1
    found = of_sample(z)
    assert found.mean_D == pytest.approx(z.mean(0))
    assert found.total_variance == pytest.approx(np.trace(np.cov(z.T)), rel=1e-4)
    assert found.frechet(z) < 1e-4 * found.total_variance


def test_spread_is_the_distance_of_two(chance):
    z = chance.normal(size=(2000, 4))
    pairs = np.linalg.norm(z[:1000] - z[1000:], axis=1)
    assert spread(z) == pytest.approx(np.sqrt((pairs**2).mean()), rel=0.05)
    assert spread(z[:1]) == 0
