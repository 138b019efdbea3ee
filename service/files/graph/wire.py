"""The bytes of an ONNX file, walked over before anything parses them.

Weights stay where they are: what is handed to a parser is the file without them, which is small whatever the file is.
A protobuf message is a row of fields, each a tag (number and kind) and its value; messages inside are values with a
length.
"""

from collections.abc import Iterator
from typing import NamedTuple

from service.files.errors import BadFile
from service.files.upload import Upload
from service.files.words import size

DAMAGED, CUT_OFF, TOO_LARGE = "the file is damaged", "the file is cut off", "the graph is too large"
WINDOW = 1 << 16
MOST_FIELDS = 100_000
MOST_BYTES = 16 << 20  # of everything but weights
KEPT_INLINE = 4096  # bytes of a tensor up to which it may be a shape or an axis, which the graph is read with
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

GRAPH, INITIALIZER = 7, 5  # of ModelProto, of GraphProto
DATA_FIELDS = {4: "float_data", 5: "int32_data", 7: "int64_data", 9: "raw_data", 10: "double_data", 11: "uint64_data"}


class Field(NamedTuple):
    number: int
    kind: int
    begin: int  # of its tag
    start: int  # of what it holds
    end: int


class Data(NamedTuple):
    """Numbers of a tensor that were left in the file."""

    field: str
    begin: int
    length: int


class Skeleton(NamedTuple):
    """The model without its larger tensors; of each initializer, in order, what was left out."""

    model: bytes
    left: list[Data | None]


class Wire:
    """Fields of one upload, read through a small window."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._window, self._first = b"", 0
        self._fields, self._copied = 0, 0

    def fields(self, begin: int, end: int) -> Iterator[Field]:
        place = begin
        while place < end:
            self._fields += 1
            if self._fields > MOST_FIELDS:
                raise BadFile(TOO_LARGE, f"it has more than {MOST_FIELDS:,} parts")
            tag, start = self._varint(place, end)
            stop = self._end_of(tag & 7, start, end)
            if tag & 7 == LENGTH:
                start = stop[1]
            yield Field(tag >> 3, tag & 7, place, start, stop[0])
            place = stop[0]

    def copied(self, begin: int, end: int) -> bytes:
        self._copied += end - begin
        if self._copied > MOST_BYTES:
            raise BadFile(TOO_LARGE, f"beside its weights it has more than {size(MOST_BYTES)}")
        return bytes(self._upload.bytes_at(begin, end - begin))

    def _end_of(self, kind: int, start: int, end: int) -> tuple[int, int]:
        """Where a value ends, and where what it holds begins."""
        if kind == VARINT:
            stop = self._varint(start, end)[1]
        elif kind == LENGTH:
            length, start = self._varint(start, end)
            stop = start + length
        elif kind in (FIXED32, FIXED64):
            stop = start + (4 if kind == FIXED32 else 8)
        else:
            raise BadFile(DAMAGED, f"at byte {start:,} is something that no ONNX file has")
        if stop > end:
            raise BadFile(CUT_OFF, f"at byte {start:,} it says that {size(stop - start)} follow: upload it again")
        return stop, start

    def _varint(self, place: int, end: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            if place >= end:
                raise BadFile(CUT_OFF, f"it ends at byte {end:,} in the middle of a number: upload it again")
            byte = self._byte(place)
            value |= (byte & 0x7F) << shift
            place += 1
            if byte < 0x80:
                return value, place
        raise BadFile(DAMAGED, f"at byte {place:,} is a number that has no end")

    def _byte(self, place: int) -> int:
        if not self._first <= place < self._first + len(self._window):
            count = min(WINDOW, self._upload.size - place)
            self._window, self._first = bytes(self._upload.bytes_at(place, count)), place
        return self._window[place - self._first]


def skeleton_of(upload: Upload) -> Skeleton:
    wire, parts = Wire(upload), []
    left: list[Data | None] = []
    graphs = 0
    for field in wire.fields(0, upload.size):
        if field.number != GRAPH:
            parts.append(wire.copied(field.begin, field.end))
            continue
        graphs += 1
        if graphs > 1 or field.kind != LENGTH:
            raise BadFile(DAMAGED, "it holds more than one graph, or one that is no graph")
        parts.append(_packed(GRAPH, _graph(wire, field, left)))
    if not graphs:
        raise BadFile(DAMAGED, "there is no graph in it")
    return Skeleton(b"".join(parts), left)


def _graph(wire: Wire, graph: Field, left: list[Data | None]) -> bytes:
    parts = []
    for field in wire.fields(graph.start, graph.end):
        if field.number != INITIALIZER or field.kind != LENGTH:
            parts.append(wire.copied(field.begin, field.end))
            continue
        tensor, data = _tensor(wire, field)
        parts.append(_packed(INITIALIZER, tensor))
        left.append(data)
    return b"".join(parts)


def _tensor(wire: Wire, tensor: Field) -> tuple[bytes, Data | None]:
    if tensor.end - tensor.start <= KEPT_INLINE:
        return wire.copied(tensor.start, tensor.end), None
    parts: list[bytes] = []
    found: Data | None = None
    for field in wire.fields(tensor.start, tensor.end):
        if field.number not in DATA_FIELDS or field.kind != LENGTH:
            parts.append(wire.copied(field.begin, field.end))
        elif found is not None:
            raise BadFile(DAMAGED, "one of its tensors has its numbers twice")
        else:
            found = Data(DATA_FIELDS[field.number], field.start, field.end - field.start)
    return b"".join(parts), found


def _packed(number: int, message: bytes) -> bytes:
    return _number(number << 3 | LENGTH) + _number(len(message)) + message


def _number(value: int) -> bytes:
    raw = bytearray()
    while value > 0x7F:
        raw.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*raw, value])
