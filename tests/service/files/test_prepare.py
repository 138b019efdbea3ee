import io
import zipfile

import numpy as np
import pytest
from PIL import Image
from published import WANTED, convert, zipped

from service.files.errors import BadFile
from service.files.npz import Splits

RNG = np.random.default_rng(1)
GREY = RNG.integers(0, 256, (4, 28, 28), np.uint8)
COLOUR = RNG.integers(0, 256, (4, 20, 30, 3), np.uint8)


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def prepared(x: np.ndarray, **asked: object) -> tuple[Splits, np.ndarray]:
    told, arrays = convert(npz(x=x), WANTED._replace(**asked))
    return told, arrays["x_train"]


def pngs(images: np.ndarray) -> bytes:
    files = {}
    for place, image in enumerate(images):
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "PNG")
        files[f"{place}.png"] = stream.getvalue()
    return zipped(files)


@pytest.mark.parametrize("images", [GREY, COLOUR], ids=["grey", "colour"])
@pytest.mark.parametrize("input", [(32, 32, 3), (32, 32, 1), (7, 9, 3)])
def test_an_npz_becomes_what_a_zip_of_the_same_images_becomes(images: np.ndarray, input: tuple[int, ...]) -> None:
    by_npz, by_zip = (convert(data, WANTED._replace(input=input)) for data in (npz(x=images), pngs(images)))
    assert np.array_equal(by_npz[1]["x_train"], by_zip[1]["x_train"])
    assert by_npz[0]["preparation"] == by_zip[0]["preparation"]


def test_grey_is_copied_to_three_channels() -> None:
    told, x = prepared(GREY, input=(28, 28, 3))
    assert all(np.array_equal(x[..., channel], GREY) for channel in range(3))
    assert told["preparation"] == {"input": "28x28x3", "resize": None, "channels": "copied", "invert": False}


def test_three_channels_become_one_by_luma_where_that_is_asked_for() -> None:
    told, x = prepared(COLOUR, input=(20, 30, 1))
    assert np.abs(x[..., 0] - COLOUR @ [0.299, 0.587, 0.114]).max() <= 1
    assert told["preparation"]["channels"] == "luma"


def test_inverted() -> None:
    told, x = prepared(GREY, invert=True)
    assert np.array_equal(x[..., 0], 255 - GREY)
    assert told["preparation"] == {"input": None, "resize": None, "channels": None, "invert": True}
    assert (told["splits"]["train"]["low"], told["splits"]["train"]["high"]) == (255 - GREY.max(), 255 - GREY.min())


def test_floating_images_stay_floating() -> None:
    told, x = prepared(COLOUR.astype("f8") / 255, input=(16, 16, 1))
    _, bytes_ = prepared(COLOUR, input=(16, 16, 1))
    assert x.dtype == np.float32
    assert np.abs(x - bytes_ / 255).max() < 2 / 255
    assert told["splits"]["train"]["dtype"] == "float32"


def test_labels_and_splits_stay_what_they_are() -> None:
    arrays = {"x_train": GREY, "y_train": np.array([7, 7, 2**63, 1], "u8"), "x_test": GREY[:1]}
    _, made = convert(npz(**arrays), WANTED._replace(input=(32, 32, 3)))
    assert made["y_train"].tolist() == [7, 7, 2**63, 1]
    assert made["x_test"].shape == (1, 32, 32, 3)


@pytest.mark.parametrize(
    ("x", "asked", "word"),
    [
        (GREY.astype("f4"), {"invert": True}, "takes uint8"),
        (RNG.integers(0, 256, (2, 4, 4, 2), np.uint8), {"input": (8, 8, 3)}, "2 channels"),
        (np.asfortranarray(GREY), {"input": (8, 8, 3)}, "Fortran order"),
        (GREY, {"input": (64, 64, 3), "max_bytes": 40_000}, "49,152 bytes, and 40,000 bytes are allowed"),
        (GREY.astype("f2"), {"input": (32, 32, 1), "max_bytes": 16_383}, "16,384 bytes, and 16,383 bytes are allowed"),
    ],
)
def test_what_cannot_be_prepared_is_told(x: np.ndarray, asked: dict[str, object], word: str) -> None:
    with pytest.raises(BadFile) as caught:
        prepared(x, **asked)
    assert word in caught.value.detail


def ink(size: int = 105) -> bytes:
    """A character as Omniglot has it: one bit a pixel, dark on white."""
    image = Image.new("1", (size, size), 1)
    image.paste(0, (30, 30, 60, 60))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


OMNIGLOT = {
    f"images_background/{alphabet}/character{number:02}/{number:04}_01.png": ink()
    for alphabet in ("Greek", "Malay_(Jawi_-_Arabic)")
    for number in (1, 2)
}


def test_omniglot_goes_through_the_door_of_images() -> None:
    data = zipped({"images_background/": b"", "images_background/Greek/": b"", **OMNIGLOT}, zipfile.ZIP_DEFLATED)
    told, arrays = convert(data, WANTED._replace(input=(32, 32, 3)))
    split = told["splits"]["train"]
    characters = [
        f"{alphabet}/character0{number}" for alphabet in ("Greek", "Malay_(Jawi_-_Arabic)") for number in (1, 2)
    ]
    assert split["labels"] == characters
    assert arrays["y_train"].tolist() == [0, 1, 2, 3]
    assert arrays["x_train"][0, 0, 0].tolist() == [255, 255, 255]
    assert told["preparation"] == {"input": "32x32x3", "resize": "bilinear", "channels": "copied", "invert": False}


def test_omniglot_with_white_ink() -> None:
    told, arrays = convert(zipped(OMNIGLOT), WANTED._replace(input=(32, 32, 1), invert=True))
    assert (arrays["x_train"][0, 0, 0, 0], arrays["x_train"][0, 13, 13, 0]) == (0, 255)
    assert told["preparation"]["invert"]


def test_images_of_mixed_sizes_need_an_input() -> None:
    mixed = zipped({"a/1.png": ink(40), "a/2.png": ink(50)})
    with pytest.raises(BadFile, match="differ in size"):
        convert(mixed)
    assert convert(mixed, WANTED._replace(input=(32, 32, 1)))[1]["x_train"].shape == (2, 32, 32, 1)
