"""Tensors inside an upload, and the safetensors file that is made of them: float32, under our names.

Beside floats there is one kind of whole number, the count of batches that a batch norm keeps: int64, without sides.
"""

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypedDict

import numpy as np

from service.files.errors import BadFile
from service.files.out import Out
from service.files.upload import Upload
from service.files.words import quoted

MAX_TENSORS = 256
MAX_NAME = 200
MAX_SPAN = 256 << 20
ALIGNMENT = 8
#: What can become float32, and how numpy reads it; it has no name for bfloat16, the upper half of a float32.
FLOATS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}
WORDS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}
COUNTER = "I64"
FORMS = {**FLOATS, COUNTER: "<i8"}
ITEM = {dtype: np.dtype(form).itemsize for dtype, form in FORMS.items()}

Values = np.ndarray[Any, np.dtype[Any]]


class Tensor(NamedTuple):
    name: str
    dtype: str
    shape: Sequence[int]
    strides: Sequence[int]  # in items
    begin: int  # of its first item in the upload
    span: int  # items from the first to the last


class Weights(TypedDict):
    """What the parent is told."""

    format: str
    metadata: dict[str, str]
    tensors: dict[str, list[int]]
    dtypes: list[str]
    counters: list[str]


class Written(TypedDict):
    tensors: int


class Held(NamedTuple):
    """What the conversion starts from."""

    format: str
    metadata: dict[str, str]
    tensors: list[Tensor]

    def told(self) -> Weights:
        return {
            "format": self.format,
            "metadata": self.metadata,
            "tensors": {tensor.name: list(tensor.shape) for tensor in self.tensors},
            "dtypes": sorted({WORDS[tensor.dtype] for tensor in self.tensors if tensor.dtype != COUNTER}),
            "counters": [tensor.name for tensor in self.tensors if tensor.dtype == COUNTER],
        }


def is_name(text: object) -> bool:
    return isinstance(text, str) and len(text) <= MAX_NAME and text.isprintable()


def check_dtype(name: str, dtype: object, shape: object) -> None:
    if dtype == COUNTER and shape in ([], ()):
        return
    if not isinstance(dtype, str) or dtype not in FLOATS:
        taken = f"{', '.join(WORDS.values())} are taken, and kept as float32"
        raise BadFile("the weights are not floats", f"{quoted(name)} is {quoted(str(dtype))}; {taken}")


def check_number(names: Sequence[str], some: str) -> None:
    if len(names) > MAX_TENSORS:
        raise BadFile("too many tensors", f"no architecture here has {len(names):,} tensors, such as {some}")


def write_weights(
    upload: Upload,
    out: Out,
    held: Held,
    names: Mapping[str, str],
    metadata: Mapping[str, str],
    zeros: Sequence[str] = (),
) -> Written:
    """`names` says which of their tensors is which of ours, in our order; `zeros` are counters that they do without."""
    theirs = {tensor.name: tensor for tensor in held.tensors}
    # Counters first: so their eight bytes lie at a multiple of eight, whatever follows.
    counters = {ours: theirs[name] for name, ours in names.items() if theirs[name].dtype == COUNTER}
    floats = {ours: theirs[name] for name, ours in names.items() if theirs[name].dtype != COUNTER}
    _write_header(out, [*zeros, *counters], {ours: tensor.shape for ours, tensor in floats.items()}, metadata)
    out.write(bytes(len(zeros) * ITEM[COUNTER]))
    for tensor in counters.values():
        out.write(_values(upload, tensor).tobytes())
    for tensor in floats.values():
        out.write(_as_float32(upload, tensor).tobytes())
    return {"tensors": len(names) + len(zeros)}


def _write_header(
    out: Out, counters: Sequence[str], floats: Mapping[str, Sequence[int]], metadata: Mapping[str, str]
) -> None:
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    begin = 0
    for name, dtype, shape in (
        *((name, COUNTER, ()) for name in counters),
        *((name, "F32", shape) for name, shape in floats.items()),
    ):
        end = begin + ITEM[dtype] * prod(shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % ALIGNMENT)
    out.write(len(raw).to_bytes(8, "little") + raw)


def _as_float32(upload: Upload, tensor: Tensor) -> Values:
    values = _values(upload, tensor)
    if tensor.dtype == "BF16":
        values = (values.astype("<u4") << 16).view("<f4")
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(values, "<f4")
    if not np.isfinite(floats).all():
        raise BadFile("the weights are not finite", f"{quoted(tensor.name)} holds NaN, infinity or more than float32")
    return floats


def _values(upload: Upload, tensor: Tensor) -> Values:
    item = ITEM[tensor.dtype]
    if tensor.span * item > MAX_SPAN:
        how = "save it with .contiguous()"
        raise BadFile("a tensor is spread too far", f"{quoted(tensor.name)} has its items far from each other: {how}")
    raw = upload.bytes_at(tensor.begin, tensor.span * item)
    return np.ndarray(tensor.shape, FORMS[tensor.dtype], raw, strides=[item * stride for stride in tensor.strides])
