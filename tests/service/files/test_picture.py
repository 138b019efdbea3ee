import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from service.files import picture
from service.files.errors import BadFile
from service.files.picture import Size, decode

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (6, 5), np.uint8)
COLOUR = RNG.integers(0, 256, (6, 5, 3), np.uint8)


def encoded(image: Image.Image | np.ndarray, format: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(stream, format, **options)
    return stream.getvalue()


def refusal(data: bytes, wanted: Size | None = None) -> BadFile:
    with pytest.raises(BadFile) as caught:
        decode("1.png", data, wanted)
    return caught.value


@pytest.mark.parametrize(("format", "options"), [("PNG", {}), ("WEBP", {"lossless": True})])
def test_pixels_come_out_as_they_went_in(format: str, options: dict[str, Any]) -> None:
    assert np.array_equal(decode("x", encoded(COLOUR, format, **options), None), COLOUR)


def test_grey_has_one_channel() -> None:
    assert np.array_equal(decode("x", encoded(GREY), None), GREY[..., None])
    assert decode("x", encoded(GREY, "JPEG"), None).shape == (6, 5, 1)


def test_jpeg_is_close() -> None:
    flat = np.full((16, 16, 3), 100, np.uint8)
    assert np.abs(decode("x", encoded(flat, "JPEG"), None).astype(int) - 100).max() <= 2


def test_black_and_white_and_palettes_lose_nothing() -> None:
    bits = Image.fromarray(GREY > 100)
    assert np.array_equal(decode("x", encoded(bits), None)[..., 0], (GREY > 100) * 255)
    palette = Image.fromarray(COLOUR).quantize(16)
    assert np.array_equal(decode("x", encoded(palette), None), np.asarray(palette.convert("RGB")))


@pytest.mark.parametrize("grey", [True, False])
def test_an_opaque_alpha_channel_is_dropped(grey: bool) -> None:
    image = Image.fromarray(GREY if grey else COLOUR)
    image.putalpha(255)
    assert np.array_equal(decode("x", encoded(image), None), GREY[..., None] if grey else COLOUR)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_pixels_are_refused_unless_a_conversion_is_asked_for(mode: str) -> None:
    image = Image.new("RGBA", (4, 4), (200, 100, 50, 255))
    image.putpixel((0, 0), (200, 100, 50, 0))
    data = encoded(image.convert(mode))
    assert "transparent" in refusal(data).detail
    converted = decode("x", data, Size(4, 4, 3))
    assert converted[0, 0].tolist() == [0, 0, 0]
    assert converted[3, 3].any()


def test_half_transparent_is_laid_on_black() -> None:
    data = encoded(Image.new("RGBA", (2, 2), (200, 100, 50, 128)))
    assert decode("x", data, Size(2, 2, 3))[0, 0].tolist() == [100, 50, 25]


def test_a_transparent_colour_counts() -> None:
    assert "transparent" in refusal(encoded(np.zeros((4, 4, 3), np.uint8), transparency=(0, 0, 0))).detail


def test_channels_and_size_are_brought_to_what_is_wanted() -> None:
    assert decode("x", encoded(COLOUR), Size(3, 2, 1)).shape == (3, 2, 1)
    assert decode("x", encoded(GREY), Size(12, 9, 3)).shape == (12, 9, 3)
    assert np.array_equal(decode("x", encoded(COLOUR), Size(6, 5, 3)), COLOUR)


def test_making_it_smaller_averages() -> None:
    board = np.indices((64, 64)).sum(0) % 2 * 255
    small = decode("x", encoded(board.astype(np.uint8)), Size(8, 8, 1))
    assert abs(float(small.mean()) - 127.5) < 2
    assert small.std() < 5


def test_print_colours_need_a_conversion() -> None:
    data = encoded(Image.fromarray(COLOUR).convert("CMYK"), "JPEG")
    assert "CMYK" in refusal(data).detail
    assert decode("x", data, Size(6, 5, 3)).shape == (6, 5, 3)


@pytest.mark.parametrize("wanted", [None, Size(4, 4, 1)])
def test_sixteen_bits_are_refused(wanted: Size | None) -> None:
    assert "16 bits" in refusal(encoded(GREY.astype(np.uint16)), wanted).detail


def test_a_photo_with_a_preview_is_its_first_picture() -> None:
    preview = Image.new("RGB", (5, 6))
    data = encoded(COLOUR, "MPO", save_all=True, append_images=[preview])
    assert decode("x", data, None).shape == (6, 5, 3)


def test_exif_does_not_matter() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x011A] = 6, 72.0
    assert decode("x", encoded(COLOUR, "JPEG", exif=exif), None).shape == (6, 5, 3)


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
def test_animations_are_refused(format: str) -> None:
    data = encoded(COLOUR, format, save_all=True, append_images=[Image.new("RGB", (5, 6))])
    assert "animated" in refusal(data).detail


@pytest.mark.parametrize("format", ["GIF", "BMP", "TIFF", "PPM", "ICO", "TGA", "PDF", "EPS", "DDS"])
def test_other_formats_are_refused(format: str) -> None:
    assert "cannot be read" in refusal(encoded(COLOUR, format)).detail


def test_the_number_of_pixels_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 29)
    assert "pixels" in refusal(encoded(COLOUR)).detail
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 30)
    assert decode("x", encoded(COLOUR), None).shape == (6, 5, 3)


def test_the_bound_is_set() -> None:
    assert Image.MAX_IMAGE_PIXELS == picture.MAX_PIXELS


def test_pixels_are_counted_before_they_are_decoded() -> None:
    told: list[int] = []
    decode("x", encoded(COLOUR), None, told.append)
    assert told == [30]


VALID = [encoded(COLOUR), encoded(GREY, "JPEG"), encoded(COLOUR, "WEBP"), encoded(Image.fromarray(COLOUR).quantize(8))]


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_a_damaged_image_is_refused_or_read(data: st.DataObject) -> None:
    damaged = bytearray(data.draw(st.sampled_from(VALID)))
    places = st.integers(0, len(damaged) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        damaged[place] = value
    wanted = data.draw(st.sampled_from([None, Size(4, 4, 1), Size(4, 4, 3)]))
    try:
        pixels = decode("x", bytes(damaged), wanted)
    except BadFile as bad:
        bad.detail.encode()
        return
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
