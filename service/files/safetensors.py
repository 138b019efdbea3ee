"""safetensors, read by hand: 8 bytes of length, a JSON header, then the tensors back to back."""

import json
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np

from service.files.errors import BadFile
from service.files.looks import is_safetensors, looks_like
from service.files.tensors import ITEM, Held, Tensor, check_dtype, check_number, is_name
from service.files.upload import Upload
from service.files.words import quoted, several, sides, size

MAX_HEADER = 8_000_000  # the format allows 100 MB, which take gigabytes once they are parsed
MAX_DIMENSIONS = 8
MAX_TEXT = 4096
MAX_COUNT = 2**60
CHUNK = 4 << 20
OUR_KEYS = ("flashcards.architecture", "flashcards.input", "flashcards.range")
DAMAGED = "the safetensors header is damaged"
CUT_OFF = "the file is cut off"


class Placed(NamedTuple):
    begin: int
    end: int
    name: str
    dtype: str
    shape: list[int]


def read_safetensors(upload: Upload) -> Held:
    start, header = _header(upload)
    metadata = _metadata(header.pop("__metadata__", {}))
    check_number(list(header), several(header))
    placed = sorted(_placed(name, entry) for name, entry in header.items())
    _check_tiling(placed, upload.size - start)
    _check_values(upload, placed, start)
    return Held("safetensors", metadata, [_tensor(each, start) for each in placed])


def _header(upload: Upload) -> tuple[int, dict[str, Any]]:
    head = upload.head()
    if not is_safetensors(head):
        how = "save the state dict with safetensors.torch.save_file and upload that"
        raise BadFile("not a safetensors file", f"it looks like {looks_like(head)}; {how}")
    length = int.from_bytes(head[:8], "little")
    if length > MAX_HEADER:
        raise BadFile(DAMAGED, f"it says that it is {size(length)} long; {size(MAX_HEADER)} is the most")
    rest = upload.size - 8
    if length > rest:
        raise BadFile(CUT_OFF, f"the header says {size(length)}, and {size(rest)} follow: upload it again")
    return 8 + length, _parse(upload.bytes_at(8, length))


def _parse(raw: bytearray) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadFile(DAMAGED, f"it is not JSON that can be read: {str(error)[:200]}") from error
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name, value in pairs:
        if name in known:
            raise BadFile(DAMAGED, f"{quoted(name)} stands in it twice")
        known[name] = value
    return known


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _metadata(entry: object) -> dict[str, str]:
    """Only our own keys go on: the rest is the uploader's business."""
    if not isinstance(entry, dict) or not all(_is_text(part) for pair in entry.items() for part in pair):
        raise BadFile(DAMAGED, "__metadata__ is not a map from text to text")
    ours = {key: entry[key] for key in OUR_KEYS if key in entry}
    for key, value in ours.items():
        if len(value) > MAX_TEXT:
            raise BadFile(DAMAGED, f"the metadata {quoted(key)} is too long")
    return ours


def _is_text(value: object) -> bool:
    """JSON can spell half a character, which no reader of the file and no answer could be encoded with."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _placed(name: str, entry: object) -> Placed:
    if not is_name(name):
        raise BadFile(DAMAGED, f"{quoted(name)} is not a name for a tensor")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise BadFile(DAMAGED, f"{quoted(name)} needs dtype, shape and data_offsets, and nothing else")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    check_dtype(name, dtype, shape)
    if not _counts(shape) or len(shape) > MAX_DIMENSIONS or not _counts(offsets) or len(offsets) != 2:
        raise BadFile(DAMAGED, f"shape or data_offsets of {quoted(name)} are not plain counts")
    begin, end = offsets
    if end - begin != prod(shape) * ITEM[dtype]:
        raise BadFile(DAMAGED, f"{quoted(name)} of shape {sides(shape)} does not take {end - begin:,} bytes")
    return Placed(begin, end, name, dtype, shape)


def _tensor(placed: Placed, start: int) -> Tensor:
    steps = list(accumulate(placed.shape[:0:-1], int.__mul__, initial=1))[::-1] if placed.shape else []
    return Tensor(placed.name, placed.dtype, placed.shape, steps, start + placed.begin, prod(placed.shape))


def _counts(value: object) -> bool:
    """JSON's true is an int to Python, hence the exact type."""
    return isinstance(value, list) and all(type(item) is int and 0 <= item < MAX_COUNT for item in value)


def _check_tiling(tensors: list[Placed], length: int) -> None:
    position = 0
    for tensor in tensors:
        if tensor.begin != position:
            what = "overlaps the one before it" if tensor.begin < position else "leaves a gap before it"
            raise BadFile(DAMAGED, f"{quoted(tensor.name)} {what}")
        position = tensor.end
    if position > length:
        raise BadFile(CUT_OFF, f"the tensors take {size(position)}, and {size(length)} are there: upload it again")
    if position < length:
        raise BadFile(DAMAGED, f"{size(length - position)} follow the last tensor")


def _check_values(upload: Upload, tensors: list[Placed], start: int) -> None:
    """Of float32, which is kept as it is; the others are looked at as they are converted."""
    buffer = memoryview(bytearray(CHUNK))
    for tensor in (each for each in tensors if each.dtype == "F32"):
        for offset in range(tensor.begin, tensor.end, CHUNK):
            part = buffer[: min(CHUNK, tensor.end - offset)]
            upload.fill(part, start + offset)
            if not np.isfinite(np.frombuffer(part, "<f4")).all():
                raise BadFile("the weights are not finite", f"{quoted(tensor.name)} holds NaN or infinity")
