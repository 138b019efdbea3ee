"""MATLAB's .mat of version 5, as far as SVHN goes: X, H x W x C x N of bytes, and y, N numbers. Nothing else is read.

In memory the first side runs fastest, so an image lies in one piece, transposed.
"""

import struct
from collections.abc import Iterator
from io import BytesIO
from math import prod
from typing import NamedTuple

import numpy as np

from service.files.errors import BadFile
from service.files.parts import Part, Size, Values
from service.files.streams import ZLIB, Inflated, Limited, Open, Rewound, Stream, ended, exactly, records
from service.files.words import quoted, sides

MAGIC, MAGIC_HDF = b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"
HEADER, ENDIAN_PLACE, LITTLE_ENDIAN = 128, 126, b"IM"
TAG = struct.Struct("<II")
INT8, INT32, UINT32, MATRIX, COMPRESSED = 1, 5, 6, 14, 15
UINT8, UINT8_CLASS, NUMBER_CLASSES = 2, 9, range(6, 16)
COMPLEX = 0x0800
NUMBERS = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
MAX_ELEMENTS = 8
MAX_NAME = 63
MAX_IMAGES = 1 << 24
DAMAGED = "the .mat is damaged"
UNFIT = "the .mat is not a dataset"
LAYOUT = "it holds X, height x width x channels x N of uint8, and y, N labels, as SVHN does"


class Matrix(NamedTuple):
    name: str
    kind: int
    shape: tuple[int, ...]
    stored_as: int
    length: int
    data: Stream
    whole: Stream  # what has to be at its end after the data


def is_mat(head: bytes) -> bool:
    return head.startswith((MAGIC, MAGIC_HDF))


def read_mat(open: Open, name: str = "the .mat") -> Part:
    file = Rewound(open)
    places = _places(file, name)
    if "X" not in places:
        raise BadFile(UNFIT, f"{name} has no X; {LAYOUT}")
    count, size = _images_shape(_matrix(file, places["X"], name), name)
    if "y" not in places:
        return Part(count, _images(file, places["X"], count, size, name), size=size)
    _check_labels(_matrix(file, places["y"], name), count, name)

    def labels() -> Iterator[Values]:
        yield _labels(_matrix(file, places["y"], name), name)

    return Part(count, _images(file, places["X"], count, size, name), labels, size=size)


def _places(file: Rewound, name: str) -> dict[str, int]:
    head = exactly(file.at(0), HEADER, name)
    if head.startswith(MAGIC_HDF):
        raise BadFile(UNFIT, f"{name} is of version 7.3, which is HDF5: save it with -v7")
    if not head.startswith(MAGIC) or head[ENDIAN_PLACE:] != LITTLE_ENDIAN:
        raise BadFile(UNFIT, f"{name} is not a little-endian .mat of version 5")
    found: dict[str, int] = {}
    place = HEADER
    while tag := file.at(place).read(TAG.size):
        if len(tag) != TAG.size or len(found) == MAX_ELEMENTS:
            raise BadFile(DAMAGED, f"{name} does not end where its last array does")
        variable = _matrix(file, place, name).name
        if variable not in ("X", "y") or variable in found:
            raise BadFile(UNFIT, f"{name} also holds {quoted(variable)}; {LAYOUT}")
        found[variable] = place
        place += TAG.size + TAG.unpack(tag)[1]
    return found


def _matrix(file: Rewound, place: int, name: str) -> Matrix:
    """Up to where its numbers begin."""
    kind, length = TAG.unpack(exactly(file.at(place), TAG.size, name))
    whole: Stream = Limited(file, length)
    if kind == COMPRESSED:
        whole = Inflated(whole, ZLIB, name)
        kind, length = TAG.unpack(exactly(whole, TAG.size, name))
        whole = Exactly(whole, length, name)
    if kind != MATRIX:
        raise BadFile(UNFIT, f"{name} holds something that is no array; {LAYOUT}")
    flags = _small(whole, UINT32, 8, name)
    shape = _small(whole, INT32, 4 * 8, name)
    variable = _small(whole, INT8, MAX_NAME, name).decode("ascii", "replace")
    kind = int.from_bytes(flags[:4], "little")
    if kind & COMPLEX or kind & 0xFF not in NUMBER_CLASSES:
        raise BadFile(UNFIT, f"{quoted(variable)} in {name} is no array of real numbers; {LAYOUT}")
    counts = struct.unpack(f"<{len(shape) // 4}i", shape[: len(shape) // 4 * 4])
    stored_as, size, data = _element(whole, name)
    return Matrix(variable, kind & 0xFF, counts, stored_as, size, data, whole)


class Exactly:
    """What the inflated array says of its length is held against the compressed part's end."""

    def __init__(self, source: Stream, length: int, name: str) -> None:
        self._source = source
        self._limited = Limited(source, length)
        self._name = name

    def read(self, count: int) -> bytes:
        data = self._limited.read(count)
        if not self._limited.left:
            ended(self._source, self._name)
        return data


def _element(stream: Stream, name: str) -> tuple[int, int, Stream]:
    """Type, length and bytes. Up to four bytes may stand in the tag itself."""
    tag = exactly(stream, TAG.size, name)
    kind, length = TAG.unpack(tag)
    if kind >> 16:
        kind, length = kind & 0xFFFF, kind >> 16
        if length > 4:
            raise BadFile(DAMAGED, f"a short element of {name} says {length} bytes")
        return kind, length, BytesIO(tag[4 : 4 + length])
    return kind, length, Limited(stream, length)


def _small(stream: Stream, wanted: int, most: int, name: str) -> bytes:
    kind, length, data = _element(stream, name)
    if kind != wanted or length > most:
        raise BadFile(DAMAGED, f"the description of an array in {name} cannot be read")
    found = exactly(data, length, name)
    if isinstance(data, Limited):
        exactly(stream, -length % 8, name)
    return found


def _images_shape(matrix: Matrix, name: str) -> tuple[int, Size]:
    """MATLAB drops a last side of 1: one image has three sides."""
    shape = (*matrix.shape, 1) if len(matrix.shape) == 3 else matrix.shape
    if len(shape) != 4 or min(shape) < 1 or shape[2] not in (1, 3) or shape[3] > MAX_IMAGES:
        raise BadFile(UNFIT, f"X in {name} is {sides(matrix.shape)}; {LAYOUT}")
    if matrix.kind != UINT8_CLASS or matrix.stored_as != UINT8:
        raise BadFile(UNFIT, f"X in {name} is not uint8; {LAYOUT}")
    if matrix.length != prod(shape):
        raise BadFile(DAMAGED, f"X in {name} says {sides(matrix.shape)} and takes {matrix.length:,} bytes")
    return shape[3], Size(*shape[:3])


def _check_labels(matrix: Matrix, count: int, name: str) -> None:
    if sorted(matrix.shape) != [1] * (len(matrix.shape) - 1) + [count]:
        one = f"y in {name} is {sides(matrix.shape)}, and X has {count:,} images"
        raise BadFile(UNFIT, f"{one}: one label for each, in one row or column")
    if matrix.stored_as not in NUMBERS or matrix.length != count * np.dtype(NUMBERS[matrix.stored_as]).itemsize:
        raise BadFile(DAMAGED, f"y in {name} says {count:,} labels and takes {matrix.length:,} bytes")


def _images(file: Rewound, place: int, count: int, size: Size, name: str) -> Iterator[Values]:
    matrix = _matrix(file, place, name)
    transposed = (size.channels, size.width, size.height)
    for batch in records(matrix.data, count, prod(size), name):
        yield batch.reshape(-1, *transposed).transpose(0, 3, 2, 1)
    _finish(matrix, name)


def _labels(matrix: Matrix, name: str) -> Values:
    values = np.frombuffer(exactly(matrix.data, matrix.length, name), NUMBERS[matrix.stored_as])
    _finish(matrix, name)
    with np.errstate(all="ignore"):
        whole = values.astype("<i8")
        if not (whole == values).all() or whole.min() < 0:
            raise BadFile(UNFIT, f"y in {name} holds labels that are not whole numbers from 0 on")
    # SVHN calls the digit 0 ten. Where there is a 0, ten is a class of its own.
    return whole if (whole == 0).any() else np.where(whole == 10, 0, whole)


def _finish(matrix: Matrix, name: str) -> None:
    padding = -matrix.length % 8 if isinstance(matrix.data, Limited) else 0
    exactly(matrix.whole, padding, name)
    ended(matrix.whole, name)
