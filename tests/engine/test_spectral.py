import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from engine.models import build
from engine.spectral import FEWEST, eigenvalues, exponent, matrices, weighted_alpha
from engine.train import train
from engine.weights import WEIGHTS
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

CHANCE = np.random.default_rng(0)


def power_law(alpha: float, count: int) -> np.ndarray:
    """The quantiles of a power law from 1 on: a sample without chance."""
    return (1 - (np.arange(count) + 0.5) / count) ** (1 / (1 - alpha))


def with_spectrum(spectrum: np.ndarray) -> np.ndarray:
    """A square matrix W whose W^T W has these eigenvalues."""
    left, right = (np.linalg.qr(CHANCE.normal(size=(len(spectrum),) * 2))[0] for _ in range(2))
    return left * np.sqrt(spectrum) @ right


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0, 5.0])
def test_a_known_exponent_is_found(alpha):
    assert exponent(power_law(alpha, 1000)) == pytest.approx(alpha, rel=0.02)
    assert exponent(power_law(alpha, 64)) == pytest.approx(alpha, rel=0.1)


@pytest.mark.parametrize("scale", [0.1, 7.0])
def test_it_does_not_depend_on_the_scale(scale):
    assert exponent(scale * power_law(2.5, 64)) == pytest.approx(exponent(power_law(2.5, 64)))


def test_what_lies_below_the_tail_is_left_out():
    body = CHANCE.uniform(0.2, 1, 500)
    assert exponent(np.sort([*body, *power_law(3.0, 500)])) == pytest.approx(3.0, rel=0.05)


def test_of_few_numbers_the_exponent_is_corrected_for_its_bias():
    x = power_law(2.0, FEWEST)
    assert exponent(x) == pytest.approx(1 + (FEWEST - 1) / np.log(x / x[0]).sum())


def test_the_spectrum_of_a_matrix_and_of_its_transpose():
    spectrum = power_law(2.0, 32)
    wide = np.hstack([with_spectrum(spectrum), np.zeros((32, 8))])
    for matrix in (wide, wide.T):
        np.testing.assert_allclose(eigenvalues(matrix), spectrum)


def test_weighted_alpha_is_alpha_by_the_order_of_the_largest_eigenvalue():
    spectrum = power_law(2.0, 64)
    weights = {"one.weight": torch.tensor(with_spectrum(spectrum)), "one.bias": torch.ones(64)}
    assert weighted_alpha(weights) == pytest.approx(exponent(spectrum) * np.log10(spectrum[-1]))
    weights["two.weight"] = torch.tensor(with_spectrum(100 * spectrum))
    assert weighted_alpha(weights) == pytest.approx(exponent(spectrum) * (np.log10(spectrum[-1]) + 1))


def test_every_place_of_a_kernel_is_a_matrix():
    weight_OIHW = CHANCE.normal(size=(16, 12, 3, 3))
    found = matrices(weight_OIHW)
    assert found.shape == (9, 16, 12)
    np.testing.assert_allclose(found[5], np.sqrt(9 / 2) * weight_OIHW[:, :, 1, 2])


@pytest.mark.parametrize(
    "weight",
    [
        torch.zeros(32, 32, 3, 3),
        torch.full((32, 32, 3, 3), 0.3),
        torch.eye(32),
        torch.eye(12),
        torch.ones(32),
        torch.rand(32, FEWEST - 1),
        torch.tensor(7),
    ],
    ids=["zeros", "constant", "identity", "small identity", "vector", "narrow", "number"],
)
def test_a_layer_without_a_tail_is_skipped(weight):
    assert weighted_alpha({"layer": weight}) is None
    tailed = torch.tensor(with_spectrum(power_law(2.0, 64)))
    assert weighted_alpha({"layer": weight, "tailed": tailed}) == weighted_alpha({"tailed": tailed})


def test_training_changes_it_and_the_result_says_it(train_work, report, never):
    work = train_work(architecture="blk_1_fil_16", seed=3)
    outcome = train(work, report, never)
    untrained = build(BlkArchitecture(blocks=1, filters=16), ImageShape(8, 8, 1), torch.Generator().manual_seed(3))
    before = weighted_alpha(untrained.state_dict())
    assert outcome.result.weighted_alpha > before + 0.05
    assert outcome.result.weighted_alpha == weighted_alpha(load_file(work.out / WEIGHTS.name))


# Of weightwatcher 0.7.7: `WeightWatcher(model).analyze(ww2x=True)`, the mean of `alpha_weighted`.
THEIRS = {
    "blk_4_fil_64": (0, 1.206077),
    "blk_4_fil_32": (0, 0.994969),
    "blk_4_fil_16": (1, 0.416803),
    "blk_2_fil_32": (2, 1.020555),
}


@pytest.mark.parametrize("name", THEIRS)
def test_weightwatcher_finds_the_same(name):
    seed, expected = THEIRS[name]
    blocks, filters = (int(part) for part in name.split("_")[1::2])
    image = ImageShape(32, 32, 3)
    network = build(BlkArchitecture(blocks=blocks, filters=filters), image, torch.Generator().manual_seed(seed))
    assert weighted_alpha(network.state_dict()) == pytest.approx(expected, abs=1e-6)
