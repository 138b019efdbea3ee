"""Small ONNX graphs, node by node."""

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Sides = Sequence[int | str | None]
node = helper.make_node


def matrix(name: str, rows: int, columns: int, seed: int = 0) -> TensorProto:
    drawn = np.random.default_rng(seed).normal(size=(rows, columns)) / np.sqrt(rows)
    return numpy_helper.from_array(drawn.astype(np.float32), name)


def constant(name: str, value: object, dtype: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(value, dtype), name)


def tensor(name: str, sides: Sides, dtype: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, sides)


def model(
    nodes: Sequence[NodeProto],
    constants: Sequence[TensorProto] = (),
    x: Sides = ("N", 6),
    y: Sides = ("N", 6),
    opset: int = 17,
    ir_version: int = 9,
    **more: object,
) -> ModelProto:
    graph = helper.make_graph(list(nodes), "graph", [tensor("x", x)], [tensor("y", y)], list(constants))
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, **more)


def dense(width: int = 6, latent: int = 3, **more: object) -> ModelProto:
    """x -> a, through a tanh -> z -> y: an autoencoder of vectors. Its latent is z."""
    nodes = [
        node("MatMul", ["x", "down"], ["a"]),
        node("Tanh", ["a"], ["z"]),
        node("MatMul", ["z", "up"], ["y"]),
    ]
    return model(
        nodes, [matrix("down", width, latent), matrix("up", latent, width, 1)], ("N", width), ("N", width), **more
    )


def behind(made: ModelProto, *nodes: NodeProto, constants: Sequence[TensorProto] = ()) -> ModelProto:
    """With these nodes behind what was its answer: they take `answer` and make `y`."""
    made.graph.node[-1].output[0] = "answer"
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(constants)
    return made
