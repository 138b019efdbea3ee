import numpy as np
import pytest
import torch

from engine.data import hold_out, load_images, shuffled
from engine.errors import DatasetUnfit

CPU = torch.device("cpu")


def test_uint8_stays_uint8_and_is_scaled_by_the_batch(as_dataset):
    x = np.array([0, 51, 255, 102], np.uint8).reshape(2, 1, 2)
    images = load_images(as_dataset(x_train=x).path, "train", (-1.0, 1.0))
    assert images.x_NHWC.dtype == np.uint8
    assert images.shape == (1, 2, 1)
    batch = images.batch(np.array([1, 0]), CPU)
    assert batch.flatten().tolist() == pytest.approx([1.0, -0.2, -1.0, -0.6])
    assert batch.max() == 1.0
    assert batch.min() == -1.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
def test_floating_images_are_taken_as_they_are(as_dataset, dtype):
    x = np.linspace(0, 1, 2 * 4 * 4 * 3).reshape(2, 4, 4, 3).astype(dtype)
    images = load_images(as_dataset(x=x).path, "train", (0.0, 1.0))
    assert images.x_NHWC.dtype == np.float32
    batch = images.batch(np.arange(2), CPU)
    assert batch.shape == (2, 3, 4, 4)
    assert batch.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(batch.permute(0, 2, 3, 1).numpy(), x.astype(np.float64), atol=1e-7)
    assert images.stray() is None


def test_floats_outside_the_range_are_said_in_words(as_dataset):
    images = load_images(as_dataset(x=np.full((2, 4, 4), 255.0)).path, "train", (0.0, 1.0))
    assert "255" in images.stray()


def test_splits(as_dataset):
    both = as_dataset(x_train=np.zeros((3, 4, 4), np.uint8), x_test=np.zeros((2, 4, 4), np.uint8)).path
    assert len(load_images(both, "train", (0.0, 1.0))) == 3
    assert len(load_images(both, "test", (0.0, 1.0))) == 2
    assert load_images(as_dataset(x=np.zeros((3, 4, 4), np.uint8)).path, "test", (0.0, 1.0)) is None


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros(4), "axes"),
        (np.zeros((2, 4, 4), np.int64), "int64"),
        (np.full((2, 4, 4), np.nan), "not finite"),
        (np.full((2, 4, 4), 1e300), "not finite"),
    ],
)
def test_what_is_no_image_set_is_refused_in_words(as_dataset, x, words):
    with pytest.raises(DatasetUnfit, match=words):
        load_images(as_dataset(x=x).path, "train", (0.0, 1.0))


def test_the_order_is_a_function_of_seed_and_epoch():
    assert np.array_equal(shuffled(50, 3, 2), shuffled(50, 3, 2))
    assert sorted(shuffled(50, 3, 2)) == list(range(50))
    others = [shuffled(50, 3, 1), shuffled(50, 4, 2), shuffled(50, 2, 3)]
    assert not any(np.array_equal(shuffled(50, 3, 2), other) for other in others)


@pytest.mark.parametrize(("count", "share", "kept_back"), [(100, 0.1, 10), (2, 0.1, 1), (2, 0.99, 1), (5, 0.001, 1)])
def test_some_are_held_out_and_none_is_on_both_sides(count, share, kept_back):
    learn, held = hold_out(count, share, seed=0)
    assert len(held) == kept_back
    assert sorted([*learn, *held]) == list(range(count))


@pytest.mark.parametrize(("count", "words"), [(0, "0 training images"), (1, "1 training image;")])
def test_too_few_to_hold_one_out(count, words):
    with pytest.raises(DatasetUnfit, match=words):
        hold_out(count, 0.1, seed=0)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_median_is_the_best_constant_image(as_dataset, dtype):
    x = np.random.default_rng(0).integers(0, 256, (9, 3, 4, 2)).astype(dtype)
    images = load_images(as_dataset(x=x).path, "train", (0.0, 255.0))
    median = images.median(np.arange(9))
    assert np.array_equal(median.permute(1, 2, 0).numpy(), np.median(x, axis=0).astype(np.float32))
