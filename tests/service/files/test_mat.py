import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published import COLOURS, WANTED, convert, mat, svhn, zipped

from service.files.errors import BadFile

IMAGES = COLOURS[:, :6, :5]
LABELS = [1, 2, 10, 9, 5, 10, 1]


def refusal(data: bytes, **changed: object) -> BadFile:
    with pytest.raises(BadFile) as caught:
        convert(data, WANTED._replace(**changed))
    return caught.value


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dtype", ["u1", "f8", "i4"])
def test_images_and_labels_in_which_ten_is_zero(compress: bool, dtype: str) -> None:
    told, arrays = convert(svhn(IMAGES, np.array(LABELS, dtype), compress))
    assert np.array_equal(arrays["x_train"], IMAGES)
    assert arrays["y_train"].tolist() == [1, 2, 0, 9, 5, 0, 1]
    assert told["splits"]["train"]["shape"] == "6x5x3"


def test_where_there_is_a_zero_ten_is_a_class_of_its_own() -> None:
    assert convert(svhn(IMAGES, [0, 10, 1, 1, 1, 1, 1]))[1]["y_train"].tolist() == [0, 10, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("count", [1, 3])
def test_few_images_whose_labels_stand_in_a_tag(count: int) -> None:
    _, arrays = convert(svhn(IMAGES[:count], np.array(LABELS[:count], "u1")))
    assert np.array_equal(arrays["x_train"], IMAGES[:count])
    assert len(arrays["y_train"]) == count


def test_labels_may_be_missing_or_come_first() -> None:
    assert list(convert(mat(X=IMAGES.transpose(1, 2, 3, 0)))[1]) == ["x_train"]
    _, arrays = convert(mat(y=np.array(LABELS), X=IMAGES.transpose(1, 2, 3, 0)))
    assert np.array_equal(arrays["x_train"], IMAGES)


def test_the_two_official_files_in_a_zip_are_two_splits() -> None:
    files = {"train_32x32.mat": svhn(IMAGES, LABELS), "test_32x32.mat": svhn(IMAGES[:2], LABELS[:2])}
    told, arrays = convert(zipped(files), WANTED._replace(input=(8, 8, 3)))
    assert (arrays["x_train"].shape, arrays["x_test"].shape) == ((7, 8, 8, 3), (2, 8, 8, 3))
    assert told["preparation"]["channels"] is None


X = IMAGES.transpose(1, 2, 3, 0)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (mat(y=np.array(LABELS)), "has no X"),
        (mat(X=X, z=np.zeros(3)), "also holds 'z'"),
        (mat(X=X, y={"a": 1}), "no array of real numbers"),
        (mat(X=X, y="labels"), "no array of real numbers"),
        (mat(X=X, y=np.array([[1, "a"]], object)), "no array of real numbers"),
        (mat(X=X, y=np.ones(7) + 1j), "no array of real numbers"),
        (mat(X=X.astype("f4"), y=np.ones(7)), "not uint8"),
        (mat(X=X[:, :, 0]), "X in the .mat is 6x5x7"),
        (mat(X=X[:, :, :2]), "6x5x2x7"),
        (mat(X=X, y=np.ones(6)), "y in the .mat is 1x6, and X has 7 images"),
        (mat(X=X, y=np.ones((7, 2))), "7x2"),
        (mat(X=X, y=np.array([1.5] * 7)), "whole numbers"),
        (mat(X=X, y=np.array([np.nan] * 7)), "whole numbers"),
        (mat(X=X, y=np.array([-1] * 7)), "whole numbers"),
        (mat(X=np.zeros((2, 2, 3, 0), "u1")), "2x2x3x0"),
        (svhn(IMAGES, LABELS)[:128], "has no X"),
        (svhn(IMAGES, LABELS)[:100], "ends where"),
        (svhn(IMAGES, LABELS)[:-3], "ends in the middle"),
        (svhn(IMAGES, LABELS)[:-60], "does not end where"),
        (svhn(IMAGES, LABELS, compress=False)[:400], "ends"),
        (svhn(IMAGES, LABELS) + b"x", "does not end where"),
        (b"MATLAB 7.3 MAT-file" + bytes(200), "-v7"),
        (b"MATLAB 5.0 MAT-file".ljust(126) + b"MI" + bytes(20), "little-endian"),
    ],
)
def test_other_files_are_refused(data: bytes, word: str) -> None:
    assert word in refusal(data).detail


def test_an_array_that_goes_on_where_it_says_it_ends() -> None:
    plain = svhn(IMAGES, LABELS, compress=False)
    kind, length = struct.unpack_from("<II", plain, 128)
    packed = zlib.compress(plain[128 : 136 + length] + bytes(10**6))
    data = plain[:128] + struct.pack("<II", 15, len(packed)) + packed
    assert (kind, "goes on" in refusal(data).detail) == (14, True)


WHOLE = svhn(IMAGES, LABELS, compress=False)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 260), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_file_is_refused_or_read(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(WHOLE)
    for place, value in changes:
        damaged[place] = value
    try:
        _, arrays = convert(bytes(damaged))
    except BadFile as bad:
        bad.detail.encode()
        return
    assert arrays["x_train"].size == IMAGES.size
