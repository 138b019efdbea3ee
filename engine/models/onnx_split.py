"""One graph as two: the encoder, from the image to the latent, and the decoder, from there to the answer.

All numbers of the answer come by way of the latent, but shapes need not: exporters like to ask the image itself how
large the batch is. What a decoder asks the encoder's tensors for their shape is answered in advance. Each side of a
shape is a + b * batch; trying two batches gives a and b, and the batch is that of the latent.
"""

from collections.abc import Callable, Iterable

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from flashcards.contract.architecture import OnnxArchitecture

MEASURING = ("Shape", "Size")
ADDED = "flashcards"  # before the names of what is added, where the file has none like it
Measure = Callable[[ModelProto, list[str], int], list[np.ndarray]]
"""(graph, tensors, batch) -> what they hold for so many empty images"""


def encoder_of(model: ModelProto, architecture: OnnxArchitecture) -> ModelProto:
    nodes = needed(model.graph, [architecture.bottleneck])
    return part(model, nodes, architecture.image, architecture.bottleneck)


def decoder_of(model: ModelProto, architecture: OnnxArchitecture, measure: Measure) -> ModelProto:
    graph, latent = model.graph, architecture.bottleneck
    behind = _behind(graph, latent)
    asked: list[str] = []

    def stops(node: NodeProto) -> bool:
        if node.op_type in MEASURING and node.input[0] not in behind:
            asked.append(node.output[0])
            return True
        return latent in node.output

    nodes = needed(graph, [architecture.answer], stops)
    shapes = _shapes(model, architecture, sorted(set(asked)), measure)
    made = part(model, [*shapes[0], *nodes], latent, architecture.answer, shapes[1])
    batch = architecture.batch or "batch"
    made.graph.input[0].CopyFrom(
        helper.make_tensor_value_info(latent, TensorProto.FLOAT, [batch, *architecture.latent])
    )
    return made


def needed(
    graph: GraphProto, tensors: Iterable[str], stops: Callable[[NodeProto], bool] = lambda node: False
) -> list[NodeProto]:
    """The nodes that these tensors come from, in their order; none beyond one that `stops`."""
    wanted, found = set(tensors), []
    for node in reversed(graph.node):
        if wanted.intersection(node.output) and not stops(node):
            found.append(node)
            wanted.update(node.input)
    return found[::-1]


def part(
    model: ModelProto, nodes: list[NodeProto], into: str, out: str, constants: Iterable[TensorProto] = ()
) -> ModelProto:
    """These nodes as a graph of their own, with the constants that they use."""
    used = {name for node in nodes for name in node.input}
    kept = [*(tensor for tensor in model.graph.initializer if tensor.name in used), *constants]
    inputs = [value for value in model.graph.input if value.name == into]
    inputs = inputs or [helper.make_tensor_value_info(into, TensorProto.FLOAT, None)]
    outputs = [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "part", inputs, outputs, kept)
    # From IR version 4 on, constants need not be named as inputs too.
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=max(4, model.ir_version))


def _behind(graph: GraphProto, latent: str) -> set[str]:
    found = {latent}
    for node in graph.node:
        if found.intersection(node.input):
            found.update(node.output)
    return found


def _shapes(
    model: ModelProto, architecture: OnnxArchitecture, asked: list[str], measure: Measure
) -> tuple[list[NodeProto], list[TensorProto]]:
    if not asked:
        return [], []
    probe = part(model, needed(model.graph, asked), architecture.image, asked[0])
    del probe.graph.output[:]
    probe.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in asked)
    if architecture.batch is not None:
        fixed = measure(probe, asked, architecture.batch)
        return [], [numpy_helper.from_array(value, name) for name, value in zip(asked, fixed, strict=True)]
    one, two = measure(probe, asked, 1), measure(probe, asked, 2)
    zero = f"{ADDED}/zero"
    nodes = [
        helper.make_node("Shape", [architecture.bottleneck], [f"{ADDED}/latent"]),
        helper.make_node("Gather", [f"{ADDED}/latent", zero], [f"{ADDED}/batch"]),
    ]
    constants = [numpy_helper.from_array(np.array(0, np.int64), zero)]
    for place, (name, first, second) in enumerate(zip(asked, one, two, strict=True)):
        times, rest, product = (f"{ADDED}/{word}/{place}" for word in ("times", "rest", "product"))
        constants.append(numpy_helper.from_array(second - first, times))
        constants.append(numpy_helper.from_array(2 * first - second, rest))
        nodes.append(helper.make_node("Mul", [times, f"{ADDED}/batch"], [product]))
        nodes.append(helper.make_node("Add", [product, rest], [name]))
    return nodes, constants
