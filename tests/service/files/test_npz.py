import io
import struct
import tempfile
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zips import Member, bomb, zip_of

from service.files.errors import BadFile
from service.files.npy import CHUNK
from service.files.npz import Limits, SplitFacts, read_splits
from service.files.upload import Upload

LIMITS = Limits(max_bytes=50_000_000, max_side=64, max_channels=4)
IMAGES = np.arange(6 * 4 * 5 * 3, dtype="u1").reshape(6, 4, 5, 3)
LABELS = np.array([0, 1, 2, 0, 1, 7])


def read(data: bytes, limits: Limits = LIMITS) -> dict[str, SplitFacts]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return read_splits(Upload(file.fileno()), limits)["splits"]


def refusal(data: bytes, limits: Limits = LIMITS) -> BadFile:
    with pytest.raises(BadFile) as caught:
        read(data, limits)
    return caught.value


def npz(save: Callable[..., None] = np.savez, /, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    save(stream, **arrays)
    return stream.getvalue()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


def npy_header(text: str, version: int = 1, length: int | None = None) -> bytes:
    raw = text.encode() + b"\n"
    count = len(raw) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", count) + raw


def says(shape: str, descr: str = "'|u1'") -> bytes:
    return npy_header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_images_and_labels_make_one_split(save: Callable[..., None]) -> None:
    facts = {"count": 6, "shape": "4x5x3", "dtype": "uint8", "low": 0.0, "high": 255.0, "classes": 4}
    facts |= {"lowest_label": int(LABELS.min()), "highest_label": int(LABELS.max())}
    assert read(npz(save, x=IMAGES, y=LABELS)) == {"train": facts}


@pytest.mark.parametrize("method", [0, 8])
def test_a_zip_by_hand_is_taken_while_it_tells_the_truth(method: int) -> None:
    assert read(zip_of(Member(npy(IMAGES), method=method)))["train"]["count"] == 6


def test_train_and_test_make_two_splits() -> None:
    splits = read(npz(x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:2]))
    assert list(splits) == ["train", "test"]
    assert (splits["test"]["count"], splits["test"]["classes"]) == (2, None)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_grey_images_have_one_channel_and_floats_their_range(dtype: str) -> None:
    images = np.linspace(-1, 1, 2 * 3 * 3, dtype=dtype).reshape(2, 3, 3)
    split = read(npz(x=images))["train"]
    assert (split["shape"], split["dtype"], split["low"], split["high"]) == ("3x3x1", images.dtype.name, -1.0, 1.0)


def test_columns_first_is_taken() -> None:
    assert read(npz(x=np.asfortranarray(IMAGES)))["train"]["shape"] == "4x5x3"


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i2", "<u4", "<i8", "<u8"])
def test_labels_are_whole_numbers(dtype: str) -> None:
    assert read(npz(x=IMAGES, y=LABELS.astype(dtype)))["train"]["classes"] == 4


def test_the_range_and_the_labels_go_over_all_chunks() -> None:
    images = np.full((3, 600, 600), 0.5, "f4")
    images[0, 0, 0], images[-1, -1, -1] = -3, 7
    assert images.nbytes > 3 * CHUNK
    split = read(npz(x=images), Limits(50_000_000, 600, 1))["train"]
    assert (split["low"], split["high"]) == (-3.0, 7.0)


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_file_that_is_cut_off_is_refused(kept: float, save: Callable[..., None]) -> None:
    data = npz(save, x=IMAGES, y=LABELS)
    refusal(data[: int(len(data) * kept)])


@pytest.mark.parametrize("name", ["z", "X", "images", "../x", "/x", "a/x", "x.npy", "arr_0"])
def test_unknown_names_are_named(name: str) -> None:
    bad = refusal(npz(**{name: IMAGES}))
    assert bad.title == "unknown arrays"
    assert repr(f"{name}.npy") in bad.detail
    assert "x_train" in bad.detail


@pytest.mark.parametrize("name", [b"x", b"x.npy\0.exe", b"..\\x.npy", b"x.npy/", b"", b"\xff.npy"])
def test_names_that_only_look_right_are_refused(name: bytes) -> None:
    refusal(zip_of(Member(npy(IMAGES), name=name)))


def test_a_local_name_that_differs_is_refused() -> None:
    assert refusal(zip_of(Member(npy(IMAGES), local_name=b"y.npy"))).title == "the npz is damaged"


def test_too_many_members_are_refused() -> None:
    assert "17" in refusal(zip_of(*[Member(npy(IMAGES), name=b"%d.npy" % number) for number in range(17)])).detail


def test_a_huge_directory_is_not_read() -> None:
    many = zip_of(*[Member(b"", name=b"%06d" % number) for number in range(22_000)])
    assert "table of contents" in refusal(many).detail


def test_the_same_name_twice_is_refused() -> None:
    assert "twice" in refusal(zip_of(Member(npy(IMAGES)), Member(npy(IMAGES)))).detail


@pytest.mark.parametrize("flags", [0x1, 0x40, 0x2000, 0x2041])
def test_encryption_is_refused(flags: int) -> None:
    assert "encrypted" in refusal(zip_of(Member(npy(IMAGES), flags=flags))).title


@pytest.mark.parametrize("method", [1, 9, 12, 14, 93, 99])
def test_only_stored_and_deflated_are_taken(method: int) -> None:
    assert "compression" in refusal(zip_of(Member(npy(IMAGES), method=method))).title


@pytest.mark.parametrize("method", [0, 8])
@pytest.mark.parametrize("change", [-300, -1, 1, 300, 10**9])
def test_a_directory_that_lies_about_a_size_is_refused(method: int, change: int) -> None:
    data = npy(IMAGES)
    refusal(zip_of(Member(data, method=method, file_size=len(data) + change)), LIMITS._replace(max_bytes=2**40))


@pytest.mark.parametrize("method", [0, 8])
@pytest.mark.parametrize("extra", [1, 5000, 3 * CHUNK])
def test_a_body_that_goes_on_behind_a_true_looking_size_is_refused(method: int, extra: int) -> None:
    data = npy(IMAGES)
    lying = Member(data + bytes(extra), method=method, file_size=len(data), crc=zlib.crc32(data))
    refusal(zip_of(lying))


@pytest.mark.parametrize("method", [0, 8])
def test_a_body_that_is_short_of_its_header_is_refused(method: int) -> None:
    data = npy(IMAGES)
    refusal(zip_of(Member(data[:-7], method=method, file_size=len(data))))


def test_a_wrong_checksum_is_refused() -> None:
    assert "CRC" in refusal(zip_of(Member(npy(IMAGES), crc=1))).detail


@pytest.mark.parametrize(
    "archive",
    [
        zip_of(Member(npy(IMAGES), offset=10**6)),
        zip_of(Member(npy(IMAGES), offset=3)),
        zip_of(Member(npy(IMAGES), compress_size=2**32 - 2)),
        zip_of(Member(npy(IMAGES), flags=0x20)),
        zip_of(Member(npy(IMAGES)), size=2**31),
        zip_of(Member(npy(IMAGES)), size=1),
        b"PK\x03\x04" + bytes(100),
    ],
)
def test_a_broken_directory_is_refused(archive: bytes) -> None:
    refusal(archive)


@pytest.mark.parametrize("shape", ["(10**12,)", "(1099511627776, 8, 8)", "(2, 1099511627776, 1)", "(4, 4, 4)"])
def test_a_header_that_claims_more_than_is_there_is_refused(shape: str) -> None:
    refusal(zip_of(Member(says(shape) + bytes(10))))


@pytest.mark.parametrize("side", [2**60, 2**63, 2**64, 10**30])
def test_a_shape_past_every_machine_is_refused(side: int) -> None:
    assert "not a list of counts" in refusal(zip_of(Member(says(f"({side}, 0, 0)")))).detail


@pytest.mark.parametrize(
    "header",
    [
        says("(-1, 2, 2)"),
        says("(True, 2, 2)"),
        says("(1.0, 2, 2)"),
        says("[1, 2, 2]"),
        says("4"),
        says("(1L, 2, 2)"),
        says("(" + "1," * 9 + ")"),
        says("(" + "9" * 5000 + ",)"),
        says("(" * 300 + ")" * 300),
        says("-" * 9000 + "1"),
        says("(1, 2, 2)", descr="'|O'"),
        says("(1, 2, 2)", descr="[('a', '<f4')]"),
        says("(1, 2, 2)", descr="('<f4', (2,))"),
        says("(1, 2, 2)", descr="'no such type'"),
        says("(1, 2, 2)", descr="5"),
        says("(1, 2, 2)", descr="__import__('os').getcwd()"),
        npy_header("{}"),
        npy_header("{1: 2, 'descr': 3}"),
        npy_header("not a dictionary"),
        npy_header("[" * 5000),
        npy_header("\0" * 50),
        npy_header("{'descr': '|u1', 'fortran_order': 1, 'shape': (1, 2, 2)}"),
        npy_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2)}", version=3),
        npy_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2)}", length=9999),
        npy_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2)}", version=2, length=2**32 - 1),
        npy_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2)}" + " " * 20_000),
        b"\x93NUMPY",
        b"\x93NUMPX\x01\x00",
        b"",
    ],
)
def test_a_hostile_array_header_is_refused(header: bytes) -> None:
    refusal(zip_of(Member(header + bytes(4)))).detail.encode()


def test_a_header_of_version_two_is_taken() -> None:
    header = npy_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2)}", version=2)
    assert read(zip_of(Member(header + bytes(4))))["train"]["shape"] == "2x2x1"


@pytest.mark.parametrize(
    "array",
    [
        np.array([[[{}]]], dtype=object),
        np.zeros((1, 2, 2), [("a", "f4")]),
        np.zeros((1, 2, 2), "U4"),
        np.zeros((1, 2, 2), "S4"),
        np.zeros((1, 2, 2), "c8"),
        np.zeros((1, 2, 2), "M8[s]"),
        np.zeros((1, 2, 2), bool),
        np.zeros((1, 2, 2), "i4"),
        np.zeros((1, 2, 2), ">f4"),
    ],
)
def test_images_of_other_types_are_refused(array: np.ndarray) -> None:
    bad = refusal(zip_of(Member(npy(array))))
    assert bad.title == "an array has the wrong type"
    assert "uint8" in bad.detail


@pytest.mark.parametrize("dtype", [float, object, ">i8", "U1", bool])
def test_labels_of_other_types_are_refused(dtype: Any) -> None:
    archive = zip_of(Member(npy(IMAGES)), Member(npy(LABELS.astype(dtype)), name=b"y.npy"))
    assert refusal(archive).title == "an array has the wrong type"


@pytest.mark.parametrize(
    "shape", [(), (6,), (4, 0), (4, 65), (1, 2, 2, 2, 2), (0, 4, 4), (1, 0, 4), (1, 65, 4), (1, 4, 65, 1)]
)
def test_images_have_three_or_four_bounded_sides(shape: tuple[int, ...]) -> None:
    assert refusal(npz(x=np.zeros(shape, "u1"))).title == "the arrays are not a dataset"


def test_channels_first_gets_a_hint() -> None:
    assert "transpose" in refusal(npz(x=np.zeros((2, 3, 32, 32), "u1"))).detail


@pytest.mark.parametrize("labels", [LABELS[:5], np.append(LABELS, 1), LABELS[:, None], LABELS[0]])
def test_there_is_one_label_an_image(labels: np.ndarray) -> None:
    assert "one label for each" in refusal(npz(x=IMAGES, y=labels)).detail


@pytest.mark.parametrize(
    "names",
    [
        ("y",),
        ("y_train",),
        ("x_test",),
        ("x_test", "y_test"),
        ("y_train", "x_test"),
        ("x_train", "y_test"),
        ("x", "x_train"),
        ("x", "y_train"),
        ("y", "x_train"),
        ("x", "x_test"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(names: tuple[str, ...]) -> None:
    arrays = {name: IMAGES if name[0] == "x" else LABELS for name in names}
    assert refusal(npz(**arrays)).title == "the arrays are not a dataset"


@pytest.mark.parametrize("test", [IMAGES[:, :2], IMAGES[..., :1], IMAGES[..., 0], IMAGES.astype("f4")])
def test_both_splits_have_the_same_images(test: np.ndarray) -> None:
    assert "both splits" in refusal(npz(x_train=IMAGES, x_test=test)).detail


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_images_are_finite(value: float, dtype: str, place: int) -> None:
    images = np.zeros((2, 3, 3), dtype)
    images.flat[place] = value
    assert refusal(npz(x=images)).title == "the images are not finite"


def test_images_stay_finite_as_float32() -> None:
    assert "float32" in refusal(npz(x=np.full((1, 2, 2), 1e39))).detail


def test_labels_are_counted_up_to_a_bound() -> None:
    images = np.zeros((100_001, 1, 1), "u1")
    assert read(npz(x=images[:-1], y=np.arange(100_000)))["train"]["classes"] == 100_000
    assert "different labels" in refusal(npz(x=images, y=np.arange(100_001))).detail


def test_the_inflated_size_is_bounded_over_all_arrays() -> None:
    data = npz(np.savez_compressed, x_train=np.zeros((9, 10, 10), "u1"), x_test=np.zeros((9, 10, 10), "u1"))
    assert read(data, LIMITS._replace(max_bytes=2 * (900 + 128)))
    assert refusal(data, LIMITS._replace(max_bytes=2 * (900 + 128) - 1)).title == "the dataset is too large"


HEADER, LARGE, HUGE = says("(1, 2, 2)"), says("(40000, 32, 32)"), says("(4194304, 32, 32)")


@pytest.mark.parametrize(
    ("header", "file_size", "word"),
    [
        (HEADER, len(HEADER) + 4, "goes on after its 4 bytes"),
        (HEADER, len(HEADER) + 5, "its entry in the zip has 5 bytes"),
        (HUGE, 2**32 - 2, "are allowed"),
        (HUGE, 1000, "its entry in the zip has"),
        (LARGE, len(LARGE) + 40000 * 1024, "goes on after its 40 MB"),
    ],
)
def test_a_bomb_is_refused_fast_and_in_little_memory(header: bytes, file_size: int, word: str) -> None:
    archive = bomb(header, gigabytes=4, file_size=file_size)
    assert len(archive) < 5_000_000
    start = time.monotonic()
    tracemalloc.start()
    try:
        assert word in refusal(archive).detail
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert time.monotonic() - start < 5


@settings(max_examples=100, deadline=None)
@given(st.data())
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_file_is_refused_or_loads(save: Callable[..., None], data: st.DataObject) -> None:
    damaged = bytearray(npz(save, x=IMAGES[:2, :2, :2], y=LABELS[:2]))
    places = st.integers(0, len(damaged) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        damaged[place] = value
    kept = bytes(damaged[: data.draw(st.integers(len(damaged) - 3, len(damaged)) | places)])
    try:
        split = read(kept)["train"]
    except BadFile:
        return
    loaded = np.load(io.BytesIO(kept), allow_pickle=False)["x"]
    assert loaded.shape[0] == split["count"]
    assert (float(loaded.min()), float(loaded.max())) == (split["low"], split["high"])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 120))
def test_a_damaged_array_header_is_refused_or_loads(patch: bytes, place: int) -> None:
    array = bytearray(npy(IMAGES))
    array[place : place + len(patch)] = patch
    try:
        split = read(zip_of(Member(bytes(array))))["train"]
    except BadFile as bad:
        bad.detail.encode()
        return
    assert np.load(io.BytesIO(array), allow_pickle=False).shape[0] == split["count"]
