"""IDX, the format of MNIST: a magic number, big-endian sides, then bytes. Images have three sides, labels one."""

import struct
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from service.files.errors import BadFile
from service.files.parts import Part, Size, Values
from service.files.streams import Open, Stream, exactly, records

IMAGES, LABELS = b"\0\0\x08\x03", b"\0\0\x08\x01"
MAGIC_BYTES = 4
NAMES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
UNFIT = "the IDX file is not a dataset"
TOGETHER = "labels come with their images: zip the files together as they are, train-images-idx3-ubyte(.gz) and so on"


class Header(NamedTuple):
    sides: tuple[int, ...]
    rest: Stream


def is_idx(head: bytes) -> bool:
    """Two zeros, a type, and how many sides."""
    return (
        head[:2] == b"\0\0" and head[2:3] in b"\x08\x09\x0b\x0c\x0d\x0e" and head[3:4] in (b"\1", b"\2", b"\3", b"\4")
    )


def read_idx(images: Open, labels: Open | None = None, name: str = "the IDX file", whose: str = "") -> Part:
    (count, height, width), stream = _open(images, IMAGES, name)
    if not count or not height or not width:
        raise BadFile(UNFIT, f"{name} says {count:,} images of {height}x{width}")
    size = Size(height, width, 1)
    shaped = (batch.reshape(-1, *size) for batch in records(stream, count, prod(size), name))
    if labels is None:
        return Part(count, shaped, size=size)
    (labelled,), rest = _open(labels, LABELS, whose)
    if labelled != count:
        raise BadFile(UNFIT, f"{whose} has {labelled:,} labels, and {name} has {count:,} images: one label for each")
    return Part(count, shaped, lambda: _labels(rest, count, whose), size=size)


def _open(open: Open, magic: bytes, name: str) -> Header:
    stream = open()
    found = exactly(stream, MAGIC_BYTES, name)
    if found != magic:
        raise BadFile(UNFIT, f"{name} {_instead(found)}; {TOGETHER}" if magic == IMAGES else f"{name} holds no labels")
    wanted = magic[-1]
    return Header(struct.unpack(f">{wanted}I", exactly(stream, 4 * wanted, name)), stream)


def _instead(magic: bytes) -> str:
    if magic == LABELS:
        return "holds labels and no images"
    if not is_idx(magic):
        return "is no IDX file"
    if magic[2] != IMAGES[2]:
        return "holds other numbers than bytes: images are uint8, N x height x width"
    return f"has {magic[3]} sides: images have three, N x height x width"


def _labels(stream: Stream, count: int, name: str) -> Iterator[Values]:
    for batch in records(stream, count, 1, name):
        yield batch[:, 0].astype("<i8")
