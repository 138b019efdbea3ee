import io

import numpy as np
import pytest
from PIL import Image

from engine.pictures import sheet, to_pixels


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize(
    ("count", "side", "size"),
    [
        (64, 32, (8 * 66 + 2, 8 * 66 + 2)),
        (3, 8, (3 * 66 + 2, 66 + 2)),
        (9, 28, (8 * 86 + 2, 2 * 86 + 2)),
        (100, 64, (8 * 66 + 2, 8 * 66 + 2)),
        (1, 1024, (256 + 4, 256 + 4)),
    ],
)
def test_sheets_are_large_enough_to_see_and_small_enough_to_open(count, side, size):
    assert opened(sheet(np.zeros((count, side, side, 1), np.uint8))).size == size


@pytest.mark.parametrize(("length", "wide"), [(64, 256), (100, 200), (256, 256), (4096, 256)])
def test_a_vector_is_a_strip(length, wide):
    assert opened(sheet(np.zeros((3, 1, length, 1), np.uint8))).size == (3 * (wide + 2) + 2, 8 + 4)


def test_every_pixel_is_enlarged_as_it_is():
    pixels = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3), dtype=np.uint8)
    picture = np.asarray(opened(sheet(pixels)))
    assert np.array_equal(picture[2:-2, 2:-2], pixels[0].repeat(8, axis=0).repeat(8, axis=1))


def test_values_outside_the_range_are_clipped():
    assert to_pixels(
        np.array([-9.0, -1.0, 0.0, 1.0, 1e38], np.float32).reshape(1, 5, 1, 1), (-1.0, 1.0)
    ).ravel().tolist() == [0, 0, 128, 255, 255]


@pytest.mark.parametrize(("channels", "shown"), [(1, 1), (3, 3), (2, 1), (5, 1)])
def test_of_other_channel_counts_the_first_is_shown(channels, shown):
    x = np.zeros((1, 2, 2, channels), np.float32)
    x[..., 0] = 1
    pixels = to_pixels(x, (0.0, 1.0))
    assert pixels.shape[-1] == shown
    assert (pixels[..., 0] == 255).all()
