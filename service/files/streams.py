"""Bytes in order, out of the upload or inflated from it: real ones are counted, declared ones are not believed."""

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from service.files.errors import BadFile
from service.files.parts import Pixels
from service.files.upload import Upload
from service.files.words import size
from service.files.zipped import DEFLATED, Entry

CHUNK = 1 << 20
PLAIN, ZLIB, GZIP = -zlib.MAX_WBITS, zlib.MAX_WBITS, 16 + zlib.MAX_WBITS
GZIP_MAGIC = b"\x1f\x8b"
DAMAGED = "the file is damaged"
CUT_OFF = "the file is cut off"


class Stream(Protocol):
    def read(self, count: int) -> bytes:
        """So many bytes; fewer only where it ends."""


Open = Callable[[], Stream]


class Span:
    """Some bytes of the upload."""

    def __init__(self, upload: Upload, begin: int, length: int) -> None:
        self._upload = upload
        self._place = begin
        self._end = begin + length

    def read(self, count: int) -> bytes:
        count = min(count, self._end - self._place)
        self._place += count
        return bytes(self._upload.bytes_at(self._place - count, count))


class Inflated:
    """Nothing may follow the end of what is inflated: a second member is as good as damage."""

    def __init__(self, source: Stream, kind: int, name: str) -> None:
        self._source = source
        self._inflater = zlib.decompressobj(kind)
        self._name = name

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count and not self._inflater.eof:
            data += self._some(count - len(data))
        return data

    def _some(self, count: int) -> bytes:
        packed = self._inflater.unconsumed_tail or self._source.read(CHUNK)
        try:
            data = self._inflater.decompress(packed, count)
        except zlib.error as error:
            raise BadFile(DAMAGED, f"{self._name} cannot be inflated") from error
        if self._inflater.eof and (self._inflater.unused_data or self._source.read(1)):
            raise BadFile(DAMAGED, f"{self._name} goes on after the end of its compressed part")
        if not packed and not data and not self._inflater.eof:
            raise BadFile(CUT_OFF, f"{self._name} ends in the middle of its compressed part: upload it again")
        return data


class Unzipped:
    """An entry of a zip: as long as it says, and with its checksum, once its end was read."""

    def __init__(self, upload: Upload, entry: Entry) -> None:
        span = Span(upload, entry.begin, entry.packed)
        self._entry = entry
        self._source: Stream = Inflated(span, PLAIN, entry.name) if entry.method == DEFLATED else span
        self._left = entry.size
        self._crc = 0

    def read(self, count: int) -> bytes:
        if not count:
            return b""
        data = self._source.read(min(count, self._left) if self._left else 1)
        self._crc = zlib.crc32(data, self._crc)
        self._left -= len(data)
        if self._left < 0 or (self._left and not data):
            raise BadFile(DAMAGED, f"{self._entry.name} does not inflate to the {size(self._entry.size)} that it says")
        if not self._left and self._crc != self._entry.crc:
            raise BadFile(DAMAGED, f"{self._entry.name} does not have the checksum that it should have")
        return data


class Rewound:
    """Any place of a stream, by reading up to it; going back begins anew."""

    def __init__(self, open: Open) -> None:
        self._open = open
        self._stream = open()
        self._place = 0

    def at(self, place: int) -> Stream:
        if place < self._place:
            self._stream, self._place = self._open(), 0
        while self._place < place and self.read(min(CHUNK, place - self._place)):
            pass
        return self

    def read(self, count: int) -> bytes:
        data = self._stream.read(count)
        self._place += len(data)
        return data


class Limited:
    """The next so many bytes of a stream."""

    def __init__(self, source: Stream, length: int) -> None:
        self._source = source
        self.left = length

    def read(self, count: int) -> bytes:
        data = self._source.read(min(count, self.left))
        self.left -= len(data)
        return data


def unpacked(open: Open, name: str) -> Open:
    """What is in a gzip, or the stream itself where it is none."""
    gzipped = open().read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return (lambda: Inflated(open(), GZIP, name)) if gzipped else open


def exactly(stream: Stream, count: int, name: str) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise BadFile(CUT_OFF, f"{name} ends where {size(count)} should follow: upload it again")
    return data


def ended(stream: Stream, name: str) -> None:
    if stream.read(1):
        raise BadFile(DAMAGED, f"{name} goes on after the end that it says")


def records(stream: Stream, count: int, width: int, name: str) -> Iterator[Pixels]:
    """Records of so many bytes, as many at a time as fit into a chunk, and nothing behind the last one."""
    at_once = max(1, CHUNK // width)
    for begin in range(0, count, at_once):
        rows = min(at_once, count - begin)
        data = stream.read(rows * width)
        if len(data) != rows * width:
            there = begin + len(data) // width
            raise BadFile(CUT_OFF, f"{name} says {count:,} items and ends after {there:,}: upload it again")
        yield np.frombuffer(data, np.uint8).reshape(rows, width)
    ended(stream, name)
