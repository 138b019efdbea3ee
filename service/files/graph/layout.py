"""How images lie in the tensor that a graph takes, and what their shape is."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from onnx import GraphProto, TensorProto, ValueInfoProto

from service.files.errors import BadFile
from service.files.words import quoted

UNFIT = "the graph does not take images"
TRIED_BATCH = 7  # a number that no side is likely to have; where the batch is free, tensors follow it
MOST_BATCH = 1024
WRITTEN = {"nchw": "N x C x H x W", "nhwc": "N x H x W x C", "nhw": "N x H x W", "nd": "N x D"}


class Entry(NamedTuple):
    name: str
    layout: str
    image: tuple[int, int, int]  # height, width, channels
    shape: tuple[int, ...]  # of the tensor that is tried, batch and all
    batch: int | None  # None: as many as one likes


def entry_of(graph: GraphProto, asked: Sequence[int] | None) -> Entry:
    """`asked` is what ?input= says: height, width, channels."""
    constants = {tensor.name for tensor in graph.initializer}
    values = [value for value in graph.input if value.name not in constants]
    if len(values) != 1:
        raise BadFile(UNFIT, f"it has {len(values)} inputs; one is taken, a batch of images or of vectors")
    name, known = values[0].name, _sides(values[0])
    batch, *rest = known
    if batch is not None and not 1 <= batch <= MOST_BATCH:
        raise BadFile(UNFIT, f"its batch is {batch:,}; leave it open, or take one up to {MOST_BATCH:,}")
    layout, image = _fit(rest, asked)
    if (words := _beyond(image)) is not None:
        raise BadFile(UNFIT, words)
    return Entry(name, layout, image, (batch or TRIED_BATCH, *_laid(layout, image)), batch)


def _sides(value: ValueInfoProto) -> list[int | None]:
    told = value.type.tensor_type
    if told.elem_type != TensorProto.FLOAT:
        kind = TensorProto.DataType.Name(told.elem_type) if told.elem_type in TensorProto.DataType.values() else "?"
        raise BadFile(UNFIT, f"its input {quoted(value.name)} is {kind.lower()}; float32 is taken")
    if not told.HasField("shape") or not 2 <= len(told.shape.dim) <= 4:
        forms = ", ".join(WRITTEN.values())
        raise BadFile(UNFIT, f"its input {quoted(value.name)} has {len(told.shape.dim)} sides; {forms} are taken")
    sides = [side.dim_value if side.HasField("dim_value") else None for side in told.shape.dim]
    return [side if side is None or side > 0 else None for side in sides]  # some exporters write 0 or -1 for "any"


def _fit(rest: list[int | None], asked: Sequence[int] | None) -> tuple[str, tuple[int, int, int]]:
    layouts = {1: ["nd"], 2: ["nhw"], 3: ["nchw", "nhwc"]}[len(rest)]
    if asked is not None:
        image = (asked[0], asked[1], asked[2])
        for layout in layouts:
            laid = _laid(layout, image)
            if _takes(layout, image) and all(side in (None, wanted) for side, wanted in zip(rest, laid, strict=True)):
                return layout, image
        raise BadFile(UNFIT, f"?input={'x'.join(map(str, image))} does not go with {_written(rest)} of its input")
    if None in rest:
        raise BadFile(UNFIT, f"its input is {_written(rest)}: say the shape of its images with ?input=HxWxC")
    known = [side for side in rest if side is not None]
    if len(known) == 3 and known[0] == known[2]:
        raise BadFile(UNFIT, f"its input is {_written(rest)}: say with ?input=HxWxC which side the channels are")
    # Channels are fewer than pixels.
    layout = layouts[0] if len(known) < 3 or known[0] < known[2] else "nhwc"
    return layout, _image(layout, known)


def _takes(layout: str, image: tuple[int, int, int]) -> bool:
    return image[2] == 1 or layout in ("nchw", "nhwc")


def _image(layout: str, known: list[int]) -> tuple[int, int, int]:
    match layout:
        case "nd":
            return (1, known[0], 1)
        case "nhw":
            return (known[0], known[1], 1)
        case "nchw":
            return (known[1], known[2], known[0])
    return (known[0], known[1], known[2])


def _laid(layout: str, image: tuple[int, int, int]) -> tuple[int, ...]:
    height, width, channels = image
    match layout:
        case "nd":
            return (prod(image),)
        case "nhw":
            return (height, width)
        case "nchw":
            return (channels, height, width)
    return image


def _beyond(image: tuple[int, int, int]) -> str | None:
    """Before shapes are worked out with it; the limits of images themselves are checked by who asked."""
    if max(image) > 4096 or prod(image) > 2**24:
        return f"images of {'x'.join(map(str, image))} are larger than any that are taken here"
    return None


def _written(rest: list[int | None]) -> str:
    return "x".join(["N", *("?" if side is None else str(side) for side in rest)])
