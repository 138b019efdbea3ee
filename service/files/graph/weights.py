"""Constants of a graph: as large as they say, finite, and not too many."""

from math import prod

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from service.files.errors import BadFile
from service.files.graph.ops import DTYPES
from service.files.graph.wire import Data
from service.files.tensors import Values
from service.files.upload import Upload
from service.files.words import quoted, sides

MOST_WEIGHTS = 2**26  # as many as any architecture here has
AT_ONCE = 1 << 20
FLOATS: dict[int, str] = {TensorProto.FLOAT: "<f4", TensorProto.DOUBLE: "<f8", TensorProto.FLOAT16: "<f2"}
PACKED: dict[str, dict[int, int]] = {
    "raw_data": DTYPES,
    "float_data": {TensorProto.FLOAT: 4},
    "double_data": {TensorProto.DOUBLE: 8},
}


def check_weights(upload: Upload, model: ModelProto, left: list[Data | None]) -> int:
    """And how many of their numbers are floats."""
    total, floats = 0, 0
    inline = [attribute.t for node in model.graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor, data in [*zip(model.graph.initializer, left, strict=True), *((each, None) for each in inline)]:
        count = prod(tensor.dims)
        total += count
        floats += count if tensor.data_type in FLOATS else 0
        if total > MOST_WEIGHTS:
            raise BadFile("too many weights", f"the graph has more than {MOST_WEIGHTS:,} numbers in its constants")
        if data is None:
            _check_finite(tensor, inline_values(tensor))
        else:
            _check_left(upload, tensor, data, count)
    return floats


def inline_values(tensor: TensorProto) -> Values:
    if tensor.HasField("raw_data") and len(tensor.raw_data) != prod(tensor.dims) * DTYPES[tensor.data_type]:
        raise _odd(tensor)
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise _odd(tensor) from error


def as_inputs(model: ModelProto, left: list[Data | None]) -> ModelProto:
    """A graph without the numbers that were left in the file: they come in as inputs do, by name and shape."""
    graph = model.graph
    model.ir_version = max(model.ir_version, 4)  # before, what is a constant had to be named as an input too
    there = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in there]
    kept = [tensor for tensor, data in zip(graph.initializer, left, strict=True) if data is None]
    for tensor, data in zip(graph.initializer, left, strict=True):
        if data is not None:
            inputs.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    del graph.input[:], graph.initializer[:]
    graph.input.extend(inputs)
    graph.initializer.extend(kept)
    return model


def _check_left(upload: Upload, tensor: TensorProto, data: Data, count: int) -> None:
    width = PACKED.get(data.field, {}).get(tensor.data_type)
    if width is None or count * width != data.length:
        raise _odd(tensor)
    form = FLOATS.get(tensor.data_type)
    for begin in range(0, data.length if form else 0, AT_ONCE):
        raw = upload.bytes_at(data.begin + begin, min(AT_ONCE, data.length - begin))
        _check_finite(tensor, np.frombuffer(raw, form))


def _check_finite(tensor: TensorProto, values: Values) -> None:
    if tensor.data_type in FLOATS and not np.isfinite(values).all():
        raise BadFile("the weights are not finite", f"{quoted(tensor.name)} holds NaN or infinity")


def _odd(tensor: TensorProto) -> BadFile:
    return BadFile("the file is damaged", f"{quoted(tensor.name)} does not hold the {sides(tensor.dims)} that it says")
