import io
import tempfile
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from flashcards.contract.image import MAX_SIDE
from service.files import images
from service.files.convert import write_dataset
from service.files.errors import BadFile
from service.files.npz import Splits
from service.files.out import Out
from service.files.parts import Wanted
from service.files.upload import Upload

WANTED = Wanted(max_bytes=10_000_000, max_side=64, max_channels=4, suffixes=(".png", ".jpg"), input=None)
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (5, 4, 3, 3), np.uint8)


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def zipped(method: int = zipfile.ZIP_DEFLATED, **parts: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def write(data: bytes, wanted: Wanted = WANTED) -> tuple[Splits, bytes]:
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as made:
        file.write(data)
        file.flush()
        with Out(made.fileno()) as out:
            told = write_dataset(Upload(file.fileno()), out, wanted)
        made.seek(0)
        return told, made.read()


def written(data: bytes, wanted: Wanted = WANTED) -> dict[str, np.ndarray]:
    return dict(np.load(io.BytesIO(write(data, wanted)[1]), allow_pickle=False))


def refusal(data: bytes, wanted: Wanted = WANTED) -> BadFile:
    with pytest.raises(BadFile) as caught:
        write(data, wanted)
    return caught.value


SOME = {f"{'cat' if place < 2 else 'dog'}/{place}.png": png(pixels) for place, pixels in enumerate(PIXELS)}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_images_and_labels_come_out_in_the_order_of_their_names(method: int) -> None:
    told, made = write(zipped(method, **dict(reversed(SOME.items()))))
    arrays = np.load(io.BytesIO(made))
    assert np.array_equal(arrays["x_train"], PIXELS)
    assert arrays["y_train"].tolist() == [0, 0, 1, 1, 1]
    split = {"count": 5, "shape": "4x3x3", "dtype": "uint8", "classes": 2}
    split |= {"low": PIXELS.min(), "high": PIXELS.max(), "labels": ["cat", "dog"]}
    split |= {"lowest_label": 0, "highest_label": 1}
    assert told == {"format": "npz", "splits": {"train": split}}


def test_two_splits() -> None:
    told, made = write(
        zipped(**{f"train/{name}": data for name, data in SOME.items()}, **{"test/1.png": png(PIXELS[0])})
    )
    arrays = np.load(io.BytesIO(made))
    assert sorted(arrays) == ["x_test", "x_train", "y_train"]
    assert np.array_equal(arrays["x_test"], PIXELS[:1])
    assert [told["splits"]["test"][what] for what in ("count", "classes", "labels")] == [1, None, None]


def test_the_same_images_make_the_same_bytes() -> None:
    stored, deflated = zipped(zipfile.ZIP_STORED, **SOME), zipped(**dict(reversed(SOME.items())))
    assert write(stored)[1] == write(deflated)[1]


def test_images_of_two_sizes_are_both_named_and_can_be_resized() -> None:
    data = zipped(**{"a.png": png(PIXELS[0]), "b.png": png(PIXELS[0][:, :2])})
    bad = refusal(data)
    assert "'a.png' is 4x3x3, 'b.png' is 4x2x3" in bad.detail
    assert "?input=4x3x3" in bad.detail
    assert written(data, WANTED._replace(input=(4, 3, 3)))["x_train"].shape == (2, 4, 3, 3)


def test_grey_among_colour_is_another_size() -> None:
    data = zipped(**{"a.png": png(PIXELS[0]), "b.png": png(PIXELS[0][..., 0])})
    assert "'b.png' is 4x3x1" in refusal(data).detail
    assert written(data, WANTED._replace(input=(4, 3, 1)))["x_train"].shape == (2, 4, 3, 1)


def test_sides_are_bounded_and_resizing_is_offered() -> None:
    data = zipped(**{"a.png": png(np.zeros((65, 4), np.uint8))})
    assert "?input=" in refusal(data).detail
    assert written(data, WANTED._replace(input=(8, 8, 1)))["x_train"].shape == (1, 8, 8, 1)


def test_a_picture_of_twenty_thousand_pixels_a_side_is_refused_by_its_header() -> None:
    data = zipped(**{"a.png": png(np.zeros((2, 20_000), np.uint8))})
    bad = refusal(data, WANTED._replace(max_side=MAX_SIDE))
    assert "'a.png' is 2x20000x1; sides go up to 1,024" in bad.detail


def test_the_size_is_bounded_before_and_after_decoding() -> None:
    data = zipped(**{f"{place}.png": png(np.zeros((64, 64), np.uint8)) for place in range(3)})
    assert "12,288 bytes" in refusal(data, WANTED._replace(max_bytes=12_287)).detail
    write(data, WANTED._replace(max_bytes=12_288))
    assert "inflates to" in refusal(data, WANTED._replace(max_bytes=100)).detail


def test_one_file_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_FILE", 60)
    assert "60 bytes is the most" in refusal(zipped(**{"a.png": png(PIXELS[0])})).detail


def test_pixels_are_bounded_over_all_images(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped(**{f"{place}.png": png(np.zeros((64, 64), np.uint8)) for place in range(20)})
    monkeypatch.setattr(images.picture, "MAX_PIXELS", 0)
    monkeypatch.setattr(images, "PIXELS_A_BYTE", 64 * 64 * 20 // len(data) + 1)
    write(data)
    monkeypatch.setattr(images, "PIXELS_A_BYTE", 64 * 64 * 20 // len(data))
    assert "packed more tightly" in refusal(data).detail


def test_a_damaged_image_is_named() -> None:
    assert "'b.png'" in refusal(zipped(**{"a.png": png(PIXELS[0]), "b.png": png(PIXELS[0])[:-20]})).detail


ZIP = zipped(zipfile.ZIP_STORED, **SOME)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_zip_is_refused_or_read(data: st.DataObject) -> None:
    damaged = bytearray(ZIP)
    places = st.integers(0, len(damaged) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        damaged[place] = value
    wanted = WANTED._replace(input=data.draw(st.sampled_from([None, (4, 4, 1)])))
    try:
        arrays: dict[str, Any] = written(bytes(damaged), wanted)
    except BadFile as bad:
        bad.detail.encode()
        return
    assert len(arrays["x_train"]) == len(SOME)
