"""The shape of every tensor of a graph, for a batch of a known size. A shape that nothing fixes is a refusal."""

from math import prod
from typing import NamedTuple

import onnx
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from service.files.errors import BadFile
from service.files.graph.folding import MOST_NUMBERS, folded
from service.files.tensors import Values
from service.files.words import quoted, sides

UNRESOLVED = "the shapes do not resolve"
MOST_ROUNDS = 50
MOST_IN_TENSOR = 2**26  # numbers that one image may become
Shape = tuple[int, ...]


class Tensor(NamedTuple):
    dtype: int
    shape: Shape


class Resolved(NamedTuple):
    nodes: list[NodeProto]  # without those that only work out shapes
    tensors: dict[str, Tensor]


def resolve(model: ModelProto, image: str, shape: Shape) -> Resolved:
    """With the tensor `image` of that shape, batch and all. What the file says of others is not believed."""
    graph = model.graph
    _fix(graph, image, shape)
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer if _few(tensor.dims)}
    for _ in range(MOST_ROUNDS):
        tensors = _infer(model)
        missing = [name for node in graph.node for name in node.output if name and name not in tensors]
        found = _fold(graph, known, tensors)
        if not missing:
            nodes = [node for node in graph.node if not found.keys() & set(node.output)]
            _check_sizes(nodes, tensors, shape[0])
            return Resolved(nodes, tensors)
        if not found:
            break
        _replace(graph, found)
    node = next(node for node in graph.node if missing[0] in node.output)
    how = "shapes must follow from that of the input, which ?input=HxWxC fixes, and not from the numbers in it"
    raise BadFile(UNRESOLVED, f"nothing says the shape of {quoted(missing[0])}, made by {quoted(node.op_type)}: {how}")


def _few(dims: object) -> bool:
    return prod(dims) <= MOST_NUMBERS  # type: ignore[call-overload, no-any-return]


def _fix(graph: GraphProto, image: str, shape: Shape) -> None:
    for place, value in enumerate(graph.input):
        if value.name == image:
            fixed = helper.make_tensor_value_info(image, value.type.tensor_type.elem_type, shape)
            graph.input[place].CopyFrom(fixed)
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]


def _infer(model: ModelProto) -> dict[str, Tensor]:
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        text = "".join(letter for letter in " ".join(str(error).split()) if letter.isprintable())
        raise BadFile(UNRESOLVED, f"the layers do not go together: {text[:300]}") from error
    graph = inferred.graph
    found = {value.name: _told(value) for value in (*graph.value_info, *graph.input, *graph.output)}
    found |= {tensor.name: Tensor(tensor.data_type, tuple(tensor.dims)) for tensor in graph.initializer}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def _told(value: ValueInfoProto) -> Tensor | None:
    """None where a side is not known, or nothing is."""
    told = value.type.tensor_type
    if not told.HasField("shape") or not all(side.HasField("dim_value") for side in told.shape.dim):
        return None
    return Tensor(told.elem_type, tuple(side.dim_value for side in told.shape.dim))


def _fold(graph: GraphProto, known: dict[str, Values], tensors: dict[str, Tensor]) -> dict[str, Values]:
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    found = {}
    for node in graph.node:
        value = folded(node, known, shapes)
        if value is not None:
            known[node.output[0]] = found[node.output[0]] = value
    return found


def _replace(graph: GraphProto, found: dict[str, Values]) -> None:
    rest = [node for node in graph.node if not found.keys() & set(node.output)]
    outputs = {value.name for value in graph.output}
    if outputs & found.keys():
        raise BadFile(UNRESOLVED, "what it answers does not depend on the image")
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in found.items())
    del graph.node[:]
    graph.node.extend(rest)


def _check_sizes(nodes: list[NodeProto], tensors: dict[str, Tensor], batch: int) -> None:
    for node in nodes:
        for name in filter(None, node.output):
            shape = tensors[name].shape
            if not all(side >= 1 for side in shape):
                raise BadFile(UNRESOLVED, f"{quoted(name)} is {sides(shape)}: a tensor without numbers")
            if prod(shape) > batch * MOST_IN_TENSOR:
                most = f"{MOST_IN_TENSOR:,} numbers are the most for one image"
                raise BadFile("the graph is too large", f"{quoted(name)} is {sides(shape)}; {most}")
