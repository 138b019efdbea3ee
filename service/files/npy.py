"""One .npy array inside an npz: its header first, then its body in chunks, never the whole of it."""

import io
import warnings
from collections.abc import Iterator
from math import prod
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from service.files.errors import BadFile
from service.files.parts import Values
from service.files.words import quoted, sides, size

MAX_HEADER = 10_000
MAX_DIMENSIONS = 8
MAX_COUNT = 2**60
CHUNK = 1 << 20
DAMAGED = "an array is damaged"

IMAGES = {"|u1": "uint8", "<f2": "float16", "<f4": "float32", "<f8": "float64"}
LABELS = {f"{order}{kind}{width}" for order, width in (("|", 1), ("<", 2), ("<", 4), ("<", 8)) for kind in "iu"}


class Array(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    body: IO[bytes]
    fortran: bool = False

    @property
    def size(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def chunks(self, width: int = CHUNK) -> Iterator[Values]:
        """The values in the order they are stored; refuses a body that is not as long as the header says."""
        for offset in range(0, self.size, width):
            wanted = min(width, self.size - offset)
            part = self.body.read(wanted)
            if len(part) != wanted:
                raise BadFile(DAMAGED, f"{self.name} ends before its {size(self.size)} are there")
            yield np.frombuffer(part, self.dtype)
        if self.body.read(1):
            raise BadFile(DAMAGED, f"{self.name} goes on after its {size(self.size)}")

    def images(self) -> Iterator[Values]:
        """N x H x W x C, as many at a time as fit into a chunk."""
        shape = (*self.shape[1:], 1)[:3]
        each = prod(shape) * self.dtype.itemsize
        for chunk in self.chunks(each * max(1, CHUNK // each)):
            yield chunk.reshape(-1, *shape)


def open_array(name: str, member: IO[bytes], member_size: int) -> Array:
    raw = _raw_header(name, member)
    shape, fortran, dtype = _parse(name, raw)
    _check_dtype(name, dtype)
    array = Array(name, shape, dtype, member, fortran)
    there = member_size - len(raw)
    if array.size != there:
        says = f"{name} says {sides(shape)} of {dtype.name}, which takes {size(array.size)}"
        raise BadFile(DAMAGED, f"{says}, and its entry in the zip has {size(there)}")
    return array


def _raw_header(name: str, member: IO[bytes]) -> bytes:
    """numpy would read as much as the length field says, up to 4 GB, before it looks at it."""
    start = member.read(8)
    width = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4}.get(start)
    if width is None:
        raise BadFile(DAMAGED, f"{name} is not a .npy array of version 1 or 2")
    length = member.read(width)
    count = int.from_bytes(length, "little")
    if count > MAX_HEADER:
        raise BadFile(DAMAGED, f"the header of {name} says {size(count)}; {size(MAX_HEADER)} is the most")
    return start + length + member.read(count)


def _parse(name: str, raw: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """By numpy, so that the check and the later load cannot read two things out of one header."""
    stream = io.BytesIO(raw)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            version = npy.read_magic(stream)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(stream, max_header_size=MAX_HEADER)
    except Exception as error:  # literal_eval, tokenize and dtype() raise nearly everything on hostile text
        raise BadFile(DAMAGED, f"the header of {name} cannot be read") from error
    if len(shape) > MAX_DIMENSIONS or any(type(side) is not int or not 0 <= side < MAX_COUNT for side in shape):
        raise BadFile(DAMAGED, f"the shape of {name} is not a list of counts")
    return shape, fortran, dtype


def _check_dtype(name: str, dtype: np.dtype[Any]) -> None:
    images = name.startswith("x")
    if dtype.str not in (IMAGES if images else LABELS):
        taken = f"{', '.join(IMAGES.values())}" if images else "whole numbers such as int64"
        how = "take astype() and save it again; arrays of objects are never loaded"
        raise BadFile(
            "an array has the wrong type",
            f"{name} is {quoted(str(dtype))}, and {taken} are taken, little-endian: {how}",
        )
