import gzip
import zipfile

import numpy as np
import pytest
from published import DIGITS, WANTED, convert, idx, zipped

from service.files.errors import BadFile

LABELS = np.array([3, 1, 4, 1, 5, 9])
FOUR = {
    "train-images-idx3-ubyte": idx(DIGITS),
    "train-labels-idx1-ubyte": idx(LABELS),
    "t10k-images-idx3-ubyte": idx(DIGITS[:2]),
    "t10k-labels-idx1-ubyte": idx(LABELS[:2]),
}


def refusal(data: bytes, **changed: object) -> BadFile:
    with pytest.raises(BadFile) as caught:
        convert(data, WANTED._replace(**changed))
    return caught.value


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_images_alone(pack) -> None:
    told, arrays = convert(pack(idx(DIGITS)))
    assert list(arrays) == ["x_train"]
    assert np.array_equal(arrays["x_train"][..., 0], DIGITS)
    split = told["splits"]["train"]
    assert (split["count"], split["shape"], split["dtype"], split["classes"]) == (6, "5x4x1", "uint8", None)
    assert (split["low"], split["high"]) == (DIGITS.min(), DIGITS.max())
    assert "preparation" not in told


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("folder", ["", "MNIST/raw/"])
def test_the_four_files_in_a_zip(method: int, pack, folder: str) -> None:
    suffix = ".gz" if pack is gzip.compress else ""
    told, arrays = convert(zipped({f"{folder}{name}{suffix}": pack(data) for name, data in FOUR.items()}, method))
    assert np.array_equal(arrays["x_train"][..., 0], DIGITS)
    assert np.array_equal(arrays["x_test"][..., 0], DIGITS[:2])
    assert arrays["y_train"].tolist() == LABELS.tolist()
    assert arrays["y_test"].tolist() == LABELS[:2].tolist()
    assert [told["splits"][split]["classes"] for split in ("train", "test")] == [5, 2]


def test_the_names_of_some_mirrors_and_what_file_managers_leave() -> None:
    names = {name.replace("-idx", ".idx"): data for name, data in FOUR.items()}
    assert sorted(convert(zipped({**names, "__MACOSX/._x": b"", ".DS_Store": b""}))[1]) == sorted(
        ["x_train", "y_train", "x_test", "y_test"]
    )


def test_a_training_split_is_enough_and_labels_may_be_missing() -> None:
    assert list(convert(zipped({"train-images-idx3-ubyte": idx(DIGITS)}))[1]) == ["x_train"]


def test_labels_alone_are_refused_with_the_way_to_send_them() -> None:
    for data in (idx(LABELS), gzip.compress(idx(LABELS))):
        bad = refusal(data)
        assert "labels and no images" in bad.detail
        assert "zip the files together" in bad.detail


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"train-labels-idx1-ubyte": idx(LABELS[:5])}, "has 5 labels, and train-images-idx3-ubyte has 6 images"),
        ({"train-labels-idx1-ubyte": idx(DIGITS)}, "holds no labels"),
        ({"train-images-idx3-ubyte": idx(LABELS)}, "labels and no images"),
        ({"train-images-idx3-ubyte": b"hello world"}, "is no IDX file"),
        ({"train-images-idx3-ubyte": b""}, "ends where"),
        ({"train-labels-idx1-ubyte": idx(LABELS) + b"\0"}, "goes on after the end"),
        ({"train-labels-idx1-ubyte": idx(LABELS)[:-1]}, "ends after 5"),
        ({"t10k-images-idx3-ubyte": idx(DIGITS[:2, :3])}, "5x4x1 and 3x4x1: ?input=5x4x1"),
        ({"notes.txt": b"x"}, "'notes.txt'"),
        ({"more/train-images-idx3-ubyte": idx(DIGITS)}, "twice"),
    ],
)
def test_a_zip_that_does_not_hold_together(changes: dict[str, bytes], word: str) -> None:
    assert word in refusal(zipped({**FOUR, **changes})).detail


@pytest.mark.parametrize(
    ("missing", "word"),
    [(("train-images-idx3-ubyte",), "no training images"), (("t10k-images-idx3-ubyte",), "t10k-labels-idx1-ubyte is")],
)
def test_images_must_be_there(missing: tuple[str, ...], word: str) -> None:
    assert word in refusal(zipped({name: data for name, data in FOUR.items() if name not in missing})).detail


def test_splits_of_two_sizes_are_brought_to_one() -> None:
    files = {**FOUR, "t10k-images-idx3-ubyte": idx(DIGITS[:2, :3])}
    told, arrays = convert(zipped(files), WANTED._replace(input=(8, 8, 3)))
    assert (arrays["x_train"].shape, arrays["x_test"].shape) == ((6, 8, 8, 3), (2, 8, 8, 3))
    assert told["preparation"] == {"input": "8x8x3", "resize": "bilinear", "channels": "copied", "invert": False}


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (idx(DIGITS)[:-1], "says 6 items and ends after 5"),
        (idx(DIGITS) + b"\0", "goes on after the end"),
        (idx(DIGITS)[:10], "ends where 12 bytes should follow"),
        (idx(DIGITS, kind=0x0D), "other numbers than bytes"),
        (idx(DIGITS[..., None]), "has 4 sides"),
        (idx(DIGITS[:0]), "says 0 images"),
        (idx(DIGITS, sides=(6, 0, 4)), "6 images of 0x4"),
        (idx(DIGITS, sides=(2**32 - 1, 2**32 - 1, 2**32 - 1)), "pixels are the most"),
        (idx(DIGITS, sides=(2**32 - 1, 60, 60)), "are allowed"),
        (idx(DIGITS, sides=(1, 65, 4)), "?input=HxWxC makes the images smaller"),
        (gzip.compress(idx(DIGITS))[:-9], "ends in the middle"),
        (gzip.compress(idx(DIGITS)) + b"more", "goes on after the end"),
        (gzip.compress(idx(DIGITS))[:-8] + bytes(8), "cannot be inflated"),
        (gzip.compress(idx(DIGITS) + bytes(10**6)), "goes on after the end"),
        (gzip.compress(b"hello"), "in which there is a text file"),
        (gzip.compress(b""), "in which there is an empty file"),
    ],
)
def test_damage_is_told(data: bytes, word: str) -> None:
    assert word in refusal(data).detail


@pytest.mark.parametrize("pixels", [np.zeros((1, 5, 4)), np.full((9, 5, 4), 7)])
def test_one_image_and_constant_images_are_taken(pixels: np.ndarray) -> None:
    told, arrays = convert(idx(pixels))
    assert np.array_equal(arrays["x_train"][..., 0], pixels)
    assert told["splits"]["train"]["low"] == told["splits"]["train"]["high"] == pixels[0, 0, 0]


def test_what_it_takes_is_counted_before_and_after_resizing() -> None:
    assert "120 bytes, and 119 bytes are allowed" in refusal(idx(DIGITS), max_bytes=119).detail
    assert "6 images of 8x8x3 take 1,152 bytes" in refusal(idx(DIGITS), max_bytes=1151, input=(8, 8, 3)).detail
    convert(idx(DIGITS), WANTED._replace(max_bytes=1152, input=(8, 8, 3)))
