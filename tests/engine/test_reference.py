import numpy as np
import pytest
import torch

from engine import capsule, reference
from engine.data import hold_out
from engine.gaussian import spread
from engine.reference import evenly, load_data
from engine.weights import load_network

CPU = torch.device("cpu")


@pytest.fixture
def of_images(analyze_work, report):
    def measure(dataset, **model_or_spec):
        work = analyze_work(dataset=dataset, **model_or_spec)
        network, done = load_network(work.model, CPU), []
        found = reference.of_images(network, load_data(work, 64, report), 64, CPU, lambda: done.append(1))
        assert done
        return found

    return measure


def test_a_capsule_says_what_its_images_said(of_images, as_dataset, digits, with_capsule):
    there = of_images(as_dataset(x=digits["x_train"][:60]), model=with_capsule)
    kept = reference.of_capsule(capsule.load(with_capsule), seed=0)
    z_ND = np.random.default_rng(0).normal(size=(30, 64))
    assert kept.around.frechet(z_ND) == pytest.approx(there.around.frechet(z_ND), rel=1e-3)
    assert kept.eps1 == pytest.approx(there.eps1)
    assert kept.spread == pytest.approx(there.spread, rel=1e-4)
    assert spread(kept.some(400)) == pytest.approx(spread(there.some(400)), rel=0.1)


def test_images_of_all_classes_are_chosen_from_a_sorted_dataset():
    assert evenly(3, 5).tolist() == [0, 1, 2]
    assert evenly(10, 4).tolist() == [0, 2, 5, 7]
    assert len(set(evenly(50_000, 5000))) == 5000


def test_a_large_dataset_is_sampled_and_that_is_said(analyze_work, as_dataset, report):
    work = analyze_work(dataset=as_dataset(x_train=np.zeros((6000, 8, 8), np.uint8), x_test=np.ones((3, 8, 8))))
    data = load_data(work, 64, report)
    assert (len(data.train_rows), len(data.test_rows)) == (5000, 3)
    assert any("5,000 of the 6,000" in note for note in report.notes)


def test_without_a_test_split_a_tenth_is_held_out(analyze_work, few_digits, report):
    data = load_data(analyze_work(dataset=few_digits), 64, report)
    assert data.test is data.train
    assert np.array_equal(data.test_rows, hold_out(50, 0.1, 0)[1])
    assert any("no test split" in note for note in report.notes)


def test_images_that_are_all_alike_are_measured_all_the_same(of_images, as_dataset):
    alike = of_images(as_dataset(x=np.full((12, 8, 8), 90, np.uint8)))
    assert alike.spread == pytest.approx(0, abs=1e-6)
    assert 0 < alike.around.frechet(np.random.default_rng(0).normal(size=(9, 64))) < 1e4


def test_latents_too_long_for_a_covariance_matrix_are_measured_by_directions(of_images, new_model, as_dataset):
    pixels = np.random.default_rng(0).integers(0, 256, (24, 48, 48), dtype=np.uint8)
    wide = of_images(as_dataset(x=pixels), model=new_model(image=(48, 48, 1)))  # 24 x 24 x 4 = 2304 numbers
    assert wide.around.triangle_DD is None
    near, far = wide.some(24), wide.some(24) + 1
    assert wide.around.frechet(near) < wide.around.frechet(far)
