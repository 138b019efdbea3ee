"""A zip of images becomes an npz: decoded one at a time, in the order of their names, straight into the file."""

import zipfile
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from service.files import picture, zipped
from service.files.dataset import MAX_ENTRIES
from service.files.errors import BadFile
from service.files.layout import Picture, lay_out
from service.files.npz import PAIRS, SplitFacts, Splits
from service.files.out import Out
from service.files.picture import Pixels, Size
from service.files.upload import Upload
from service.files.words import quoted, size

MAX_FILE = 64 << 20
#: Decoded for each byte of the zip, at most: as many of one colour as deflate packs into a byte.
PIXELS_A_BYTE = 1000
TOO_LARGE = "the dataset is too large"


class Wanted(NamedTuple):
    max_bytes: int
    max_side: int
    suffixes: Sequence[str]
    input: Sequence[int] | None


def write_dataset(upload: Upload, out: Out, wanted: Wanted) -> Splits:
    layout = lay_out(zipped.entries(upload, MAX_ENTRIES), wanted.suffixes)
    pictures = [each for part in layout.splits.values() for each in part]
    _check_sizes([each.entry for each in pictures], wanted.max_bytes)
    gallery = Gallery(upload, wanted, len(pictures))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        splits = {
            split: _write_split(archive, PAIRS[split], part, layout.labels, gallery)
            for split, part in layout.splits.items()
        }
    return {"format": "npz", "splits": splits}


def _check_sizes(entries: list[zipped.Entry], max_bytes: int) -> None:
    for entry in entries:
        if max(entry.size, entry.packed) > MAX_FILE:
            raise BadFile(TOO_LARGE, f"{quoted(entry.name)} takes {size(entry.size)}; {size(MAX_FILE)} is the most")
    inflated = sum(entry.size for entry in entries)
    if inflated > max_bytes:
        raise BadFile(TOO_LARGE, f"it inflates to {size(inflated)}, and {size(max_bytes)} are allowed")


class Gallery:
    """The pixels of one image after the other, all of one shape."""

    def __init__(self, upload: Upload, wanted: Wanted, count: int) -> None:
        self._upload = upload
        self._wanted = wanted
        self._count = count
        self._size = Size(*wanted.input) if wanted.input else None
        self._first: tuple[str, Size] | None = None
        self._pixels_left = picture.MAX_PIXELS + PIXELS_A_BYTE * upload.size

    def rows(self, part: list[Picture]) -> Iterator[Pixels]:
        for each in part:
            name = each.entry.name
            pixels = picture.decode(name, zipped.read(self._upload, each.entry), self._size, self._spend)
            self._check(name, Size(*pixels.shape))
            yield pixels

    def _spend(self, pixels: int) -> None:
        self._pixels_left -= pixels
        if self._pixels_left < 0:
            packed = f"more than {PIXELS_A_BYTE:,} pixels for each byte of the zip"
            raise BadFile(TOO_LARGE, f"its images are packed more tightly than pictures are: {packed}")

    def _check(self, name: str, found: Size) -> None:
        if self._first is None:
            self._first = name, found
            self._check_first(name, found)
        first, shape = self._first
        if found != shape:
            both = f"{quoted(first)} is {shape}, {quoted(name)} is {found}"
            raise BadFile("the images differ in size", f"{both}: ?input={shape} brings all to one size")

    def _check_first(self, name: str, found: Size) -> None:
        most = self._wanted.max_side
        if max(found.height, found.width) > most:
            how = "?input=HxWxC makes the images smaller"
            raise BadFile(TOO_LARGE, f"{quoted(name)} is {found}; sides go up to {most:,}, and {how}")
        total = self._count * found.height * found.width * found.channels
        if total > self._wanted.max_bytes:
            allowed = f"{size(self._wanted.max_bytes)} are allowed"
            raise BadFile(TOO_LARGE, f"{self._count:,} images of {found} take {size(total)}, and {allowed}")


def _write_split(
    archive: zipfile.ZipFile, members: tuple[str, str], part: list[Picture], labels: list[str], gallery: Gallery
) -> SplitFacts:
    x, y = members
    rows = gallery.rows(part)
    first = next(rows)
    low, high = 255, 0
    with archive.open(zipfile.ZipInfo(x), "w", force_zip64=True) as member:
        shape = (len(part), *first.shape)
        npy.write_array_header_1_0(member, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for row in chain([first], rows):
            member.write(row.tobytes())
            low, high = min(low, int(row.min())), max(high, int(row.max()))
    given = [each.label for each in part if each.label is not None]
    if given:
        with archive.open(zipfile.ZipInfo(y), "w", force_zip64=True) as member:
            npy.write_array(member, np.array(given, "<i8"), allow_pickle=False)
    return {
        "count": len(part),
        "shape": str(Size(*first.shape)),
        "dtype": "uint8",
        "low": low,
        "high": high,
        "classes": len(set(given)) or None,
        "labels": labels if given else None,
    }


picture.get_ready()
