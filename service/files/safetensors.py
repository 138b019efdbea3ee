"""safetensors, read by hand: 8 bytes of length, a JSON header, then the tensors back to back."""

import json
from math import prod
from typing import Any, NamedTuple, TypedDict

import numpy as np

from service.files.errors import BadFile
from service.files.looks import is_safetensors, looks_like
from service.files.upload import Upload
from service.files.words import quoted, several, sides, size

MAX_HEADER = 100_000_000
MAX_TENSORS = 256
MAX_DIMENSIONS = 8
MAX_NAME = 200
MAX_TEXT = 4096
MAX_COUNT = 2**60
ITEM = 4  # bytes of a float32, the only dtype taken
CHUNK = 4 << 20
OUR_KEYS = ("flashcards.architecture", "flashcards.input", "flashcards.range")
DAMAGED = "the safetensors header is damaged"
CUT_OFF = "the file is cut off"


class Weights(TypedDict):
    metadata: dict[str, str]
    tensors: dict[str, list[int]]


class Tensor(NamedTuple):
    begin: int
    end: int
    name: str
    shape: list[int]


def read_weights(upload: Upload) -> Weights:
    start, header = _header(upload)
    metadata = _metadata(header.pop("__metadata__", {}))
    if len(header) > MAX_TENSORS:
        some = several(header)
        raise BadFile("too many tensors", f"no architecture here has {len(header):,} tensors, such as {some}")
    tensors = sorted(_tensor(name, entry) for name, entry in header.items())
    _check_tiling(tensors, upload.size - start)
    _check_values(upload, tensors, start)
    return {"metadata": metadata, "tensors": {tensor.name: tensor.shape for tensor in tensors}}


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


def _tensor(name: str, entry: object) -> Tensor:
    if len(name) > MAX_NAME or not name.isprintable():
        raise BadFile(DAMAGED, f"{quoted(name)} is not a name for a tensor")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise BadFile(DAMAGED, f"{quoted(name)} needs dtype, shape and data_offsets, and nothing else")
    if entry["dtype"] != "F32":
        raise BadFile("the weights are not float32", _how_to_convert(name, entry["dtype"]))
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _counts(shape) or len(shape) > MAX_DIMENSIONS or not _counts(offsets) or len(offsets) != 2:
        raise BadFile(DAMAGED, f"shape or data_offsets of {quoted(name)} are not plain counts")
    begin, end = offsets
    if end - begin != prod(shape) * ITEM:
        raise BadFile(DAMAGED, f"{quoted(name)} of shape {sides(shape)} does not take {end - begin:,} bytes")
    return Tensor(begin, end, name, shape)


def _how_to_convert(name: str, dtype: object) -> str:
    how = "save_file({k: v.float() for k, v in state.items()}, path) converts a state dict"
    return f"{quoted(name)} is {quoted(str(dtype))}, and F32 is taken; {how}"


def _counts(value: object) -> bool:
    """JSON's true is an int to Python, hence the exact type."""
    return isinstance(value, list) and all(type(item) is int and 0 <= item < MAX_COUNT for item in value)


def _check_tiling(tensors: list[Tensor], length: int) -> None:
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


def _check_values(upload: Upload, tensors: list[Tensor], start: int) -> None:
    buffer = memoryview(bytearray(CHUNK))
    for tensor in tensors:
        for offset in range(tensor.begin, tensor.end, CHUNK):
            part = buffer[: min(CHUNK, tensor.end - offset)]
            upload.fill(part, start + offset)
            if not np.isfinite(np.frombuffer(part, "<f4")).all():
                raise BadFile("the weights are not finite", f"{quoted(tensor.name)} holds NaN or infinity")
