import json
import struct
import tempfile
from math import prod

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from service.files.errors import BadFile
from service.files.safetensors import CHUNK, read_safetensors
from service.files.tensors import Weights
from service.files.upload import Upload

SHAPES = {"a": (2, 3), "b": (4,), "c": ()}


def read(data: bytes) -> Weights:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return read_safetensors(Upload(file.fileno())).told()


def file_of(header: object, body: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def entry(shape: object = (2,), begin: object = 0, end: object = 8, dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def valid(values: np.ndarray | None = None, metadata: dict[str, str] | None = None) -> bytes:
    numbers = np.arange(sum(prod(shape) for shape in SHAPES.values()), dtype="<f4") if values is None else values
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    position = 0
    for name, shape in SHAPES.items():
        end = position + 4 * prod(shape)
        header[name] = entry(shape, position, end)
        position = end
    return file_of(header, numbers.tobytes())


def refusal(data: bytes) -> BadFile:
    with pytest.raises(BadFile) as caught:
        read(data)
    return caught.value


def test_a_valid_file_gives_its_shapes_and_our_metadata() -> None:
    data = valid(metadata={"flashcards.architecture": "blk_1_fil_2", "format": "pt"})
    assert read(data) == {
        "format": "safetensors",
        "metadata": {"flashcards.architecture": "blk_1_fil_2"},
        "tensors": {"a": [2, 3], "b": [4], "c": []},
        "dtypes": ["float32"],
        "counters": [],
    }


def test_what_the_safetensors_library_writes_is_taken() -> None:
    arrays = {name: np.ones(shape, "f4") for name, shape in SHAPES.items()}
    data = safetensors.numpy.save(arrays, metadata={"flashcards.input": "32x32x3"})
    assert read(data)["tensors"] == {name: list(shape) for name, shape in SHAPES.items()}


def test_empty_tensors_and_a_padded_header_are_taken() -> None:
    header = json.dumps({"a": entry([0, 5], 0, 0), "b": entry([1], 0, 4)}).encode() + b"   "
    assert read(file_of(header, bytes(4)))["tensors"] == {"a": [0, 5], "b": [1]}


@pytest.mark.parametrize("length", [0x0280, 0x0480])
def test_a_header_length_that_reads_as_a_pickle_is_no_pickle(length: int) -> None:
    header = json.dumps({"a": entry()}).encode().ljust(length)
    assert read(file_of(header, bytes(8)))["tensors"] == {"a": [2]}


@pytest.mark.parametrize("kept", [0, 1, 4, 7, 8, 9, 20, -1, -4, -40])
def test_a_file_that_is_cut_off_is_refused(kept: int) -> None:
    data = valid()
    refusal(data[: kept if kept >= 0 else len(data) + kept])


def test_a_cut_body_says_so() -> None:
    assert refusal(valid()[:-4]).title == "the file is cut off"
    assert "44 bytes" in refusal(valid()[:-4]).detail


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"", "an empty file"),
        (b"PK\x03\x04" + bytes(26) + b"archive/data.pkl", "a .pt checkpoint"),
        (b"PK\x03\x04" + bytes(26) + b"x.npy", "an npz file"),
        (b"PK\x03\x04" + bytes(26) + b"cats/1.png", "a zip file"),
        (b"\x80\x02}q\x00X\x06\x00\x00\x00weightq\x01K\x01s.", "a pickle"),
        (b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00}\x94.", "a pickle"),
        (b"\x89HDF\r\n\x1a\n" + bytes(40), "an HDF5 file"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'", "a single .npy array"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "an HTML page"),
        (b"\n  <html lang=en>", "an HTML page"),
        (b'{"error": "not found"}', "JSON text"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "a Git LFS pointer"),
        ("gewöhnlicher Text, und mehr davon".encode(), "a text file"),
        ("ö".encode() * 400, "a text file"),
        (bytes(range(1, 256)), "a binary file of an unknown kind"),
        (bytes(64), "a binary file of an unknown kind"),
    ],
)
def test_other_formats_are_named(data: bytes, name: str) -> None:
    bad = refusal(data)
    assert bad.title == "not a safetensors file"
    assert name in bad.detail
    assert "save_file" in bad.detail


@pytest.mark.parametrize("length", [2, 10, 8_000_001, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_a_header_length_that_lies_is_refused(length: int) -> None:
    refusal(file_of({"a": entry()}, bytes(8), length=length))


def test_a_header_longer_than_the_file_is_a_cut_file() -> None:
    assert refusal(file_of({"a": entry()}, bytes(8), length=5000)).title == "the file is cut off"


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b"{]",
        b"{}x",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"\xff\xfe": 1}',
        b'{"a":' + b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a": {"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        b'{"a": {"dtype":"F32","shape":[2],"data_offsets":[0,8]}, "a": {}}',
        b'{"__metadata__": {"k": "1", "k": "2"}}',
    ],
)
def test_a_header_that_is_not_plain_json_is_refused(header: bytes) -> None:
    assert refusal(file_of(header, bytes(8))).title == "the safetensors header is damaged"


def test_many_duplicates_cost_no_more_than_their_length() -> None:
    refusal(file_of(b"{" + b",".join(b'"k%d":0' % number for number in range(200_000)) + b',"k1":0}'))


@pytest.mark.parametrize(
    "metadata", [None, [], "text", {"k": 1}, {"k": None}, {"k": {"deep": "er"}}, {"k": "\ud800"}, {"\udfff": "v"}]
)
def test_metadata_is_text_to_text(metadata: object) -> None:
    assert "__metadata__" in refusal(file_of({"__metadata__": metadata})).detail


def test_our_metadata_is_short() -> None:
    assert "too long" in refusal(file_of({"__metadata__": {"flashcards.input": "x" * 5000}})).detail
    assert read(file_of({"__metadata__": {"notes": "x" * 5000}}))["metadata"] == {}


@pytest.mark.parametrize("name", ["\ud800", "line\nbreak", "bell\a", "x" * 300, "\u202ereversed"])
def test_names_that_could_not_be_shown_are_refused(name: str) -> None:
    refusal(file_of({name: entry()}, bytes(8))).detail.encode()


@pytest.mark.parametrize("value", [-1, True, 1.0, 2.5, "2", None, [2], 2**60, 2**63, 2**64, 10**30, 1e300])
@pytest.mark.parametrize("place", ["shape", "begin", "end"])
def test_counts_are_plain_and_bounded(place: str, value: object) -> None:
    lying = entry(**{place: [value] if place == "shape" else value})
    assert refusal(file_of({"a": lying}, bytes(8))).title == "the safetensors header is damaged"


@pytest.mark.parametrize(
    "bad_entry",
    [
        None,
        [],
        "F32",
        {},
        {"dtype": "F32", "shape": [2]},
        {**entry(), "extra": 1},
        entry(shape=2),
        entry(shape={}),
        entry(shape=[1] * 9),
        entry(shape=[2**32, 2**32], end=0),
        entry(shape=[3]),
        entry(begin=8, end=0),
        {"dtype": "F32", "shape": [2], "data_offsets": [0]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": "08"},
    ],
)
def test_an_entry_that_contradicts_itself_is_refused(bad_entry: object) -> None:
    assert refusal(file_of({"a": bad_entry}, bytes(8))).title == "the safetensors header is damaged"


@pytest.mark.parametrize(
    ("offsets", "length", "word"),
    [
        ([(0, 8), (4, 12)], 12, "overlaps"),
        ([(0, 8), (0, 8)], 8, "overlaps"),
        ([(0, 8), (12, 20)], 20, "gap"),
        ([(4, 12), (12, 20)], 20, "gap"),
        ([(0, 8), (8, 16)], 17, "follow the last"),
        ([(0, 8), (8, 16)], 24, "follow the last"),
        ([(0, 8), (8, 16)], 15, "upload it again"),
        ([(0, 8), (2**59, 2**59 + 8)], 16, "gap"),
        ([], 8, "follow the last"),
    ],
)
def test_the_tensors_tile_the_buffer(offsets: list[tuple[int, int]], length: int, word: str) -> None:
    header = {f"t{place}": entry([2], *pair) for place, pair in enumerate(offsets)}
    assert word in refusal(file_of(header, bytes(length))).detail


@pytest.mark.parametrize("dtype", ["I64", "U8", "BOOL", "F8_E4M3", "f32", "", None, 32, ["F32"]])
def test_only_floats_are_taken(dtype: object) -> None:
    bad = refusal(file_of({"a": entry(dtype=dtype)}, bytes(8)))
    assert bad.title == "the weights are not floats"
    assert "float32, float16, bfloat16, float64 are taken" in bad.detail


@pytest.mark.parametrize(
    ("dtype", "word", "end"), [("F16", "float16", 4), ("BF16", "bfloat16", 4), ("F64", "float64", 16)]
)
def test_other_floats_are_told_apart_since_they_are_converted(dtype: str, word: str, end: int) -> None:
    assert read(file_of({"a": entry(end=end, dtype=dtype)}, bytes(end)))["dtypes"] == [word]
    assert "does not take" in refusal(file_of({"a": entry(end=end + 1, dtype=dtype)}, bytes(end + 1))).detail


def test_too_many_tensors_are_refused_before_their_values_are_read() -> None:
    header = {f"layer.{number}": entry([0], 0, 0) for number in range(257)}
    bad = refusal(file_of(header))
    assert "257" in bad.detail
    assert "and 253 more" in bad.detail


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("place", "name"), [(0, "a"), (5, "a"), (6, "b"), (10, "c")])
def test_the_first_tensor_that_is_not_finite_is_named(value: float, place: int, name: str) -> None:
    numbers = np.zeros(11, "<f4")
    numbers[place] = value
    bad = refusal(valid(numbers))
    assert bad.title == "the weights are not finite"
    assert repr(name) in bad.detail


@pytest.mark.parametrize("place", [0, CHUNK // 4 - 1, CHUNK // 4, -1])
def test_every_chunk_is_looked_at(place: int) -> None:
    numbers = np.zeros(2 * CHUNK // 4 + 3, "<f4")
    numbers[place] = np.nan
    refusal(file_of({"big": entry([len(numbers)], 0, numbers.nbytes)}, numbers.tobytes()))


def test_the_largest_floats_are_finite() -> None:
    numbers = np.full(11, np.finfo("f4").max, "<f4")
    assert read(valid(numbers))["tensors"]["b"] == [4]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_file_is_refused_or_loads(data: st.DataObject) -> None:
    damaged = bytearray(valid(metadata={"flashcards.range": "0,1"}))
    places = st.integers(0, len(damaged) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        damaged[place] = value
    kept = bytes(damaged[: data.draw(st.integers(len(damaged) - 3, len(damaged)) | places)])
    try:
        shapes = read(kept)["tensors"]
    except BadFile:
        return
    loaded = safetensors.numpy.load(kept)
    assert {name: list(array.shape) for name, array in loaded.items()} == shapes


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    )
)
def test_any_json_is_refused_or_has_no_tensors(header: object) -> None:
    try:
        assert read(file_of(header))["tensors"] == {}
    except BadFile as bad:
        bad.detail.encode()
