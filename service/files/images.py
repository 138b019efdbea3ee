"""A zip of images: decoded one at a time, in the order of their names."""

from collections.abc import Iterator

import numpy as np

from service.files import picture, zipped
from service.files.dataset import MAX_ENTRIES
from service.files.errors import BadFile
from service.files.layout import Picture, lay_out
from service.files.parts import Part, Pixels, Size, Wanted
from service.files.prepare import Preparation
from service.files.upload import Upload
from service.files.words import quoted, size

MAX_FILE = 64 << 20
#: Decoded for each byte of the zip, at most: as many of one colour as deflate packs into a byte.
PIXELS_A_BYTE = 1000
TOO_LARGE = "the dataset is too large"


def read_images(upload: Upload, wanted: Wanted, preparation: Preparation) -> dict[str, Part]:
    layout = lay_out(zipped.entries(upload, MAX_ENTRIES), wanted.suffixes)
    pictures = [each for part in layout.splits.values() for each in part]
    _check_sizes([each.entry for each in pictures], wanted.max_bytes)
    gallery = Gallery(upload, wanted, preparation, len(pictures))
    return {split: _part(part, layout.labels, gallery) for split, part in layout.splits.items()}


def _part(pictures: list[Picture], labels: list[str], gallery: "Gallery") -> Part:
    given = [each.label for each in pictures if each.label is not None]
    rows = gallery.rows(pictures)
    if not given:
        return Part(len(pictures), rows)
    return Part(len(pictures), rows, lambda: iter([np.array(given, "<i8")]), labels)


def _check_sizes(entries: list[zipped.Entry], max_bytes: int) -> None:
    for entry in entries:
        if max(entry.size, entry.packed) > MAX_FILE:
            raise BadFile(TOO_LARGE, f"{quoted(entry.name)} takes {size(entry.size)}; {size(MAX_FILE)} is the most")
    inflated = sum(entry.size for entry in entries)
    if inflated > max_bytes:
        raise BadFile(TOO_LARGE, f"it inflates to {size(inflated)}, and {size(max_bytes)} are allowed")


class Gallery:
    """The pixels of one image after the other, all of one shape."""

    def __init__(self, upload: Upload, wanted: Wanted, preparation: Preparation, count: int) -> None:
        self._upload = upload
        self._wanted = wanted
        self._preparation = preparation
        self._count = count
        self._first: tuple[str, Size] | None = None
        self._pixels_left = picture.MAX_PIXELS + PIXELS_A_BYTE * upload.size

    def rows(self, part: list[Picture]) -> Iterator[Pixels]:
        for each in part:
            yield self.taken(each.entry.name, zipped.read(self._upload, each.entry))[None]

    def taken(self, name: str, data: bytes) -> Pixels:
        pixels = picture.decode(name, data, self._preparation.size, self._spend, self._preparation.note)
        self._check(name, Size(*pixels.shape))
        return pixels

    def _spend(self, pixels: int) -> None:
        self._pixels_left -= pixels
        if self._pixels_left < 0:
            packed = f"more than {PIXELS_A_BYTE:,} pixels for each byte of the file"
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


picture.get_ready()
