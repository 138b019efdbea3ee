"""Small numbers worked out before anything runs: the same that ONNX Runtime gives."""

import numpy as np
import onnxruntime
import pytest
from graphs import constant, node
from onnx import TensorProto, helper, numpy_helper

from service.files.graph.folding import MOST_NUMBERS, folded

SIX = np.arange(6, dtype=np.int64) + 2
SHAPE = (7, 3, 8)

CASES = {
    "gather_one": (node("Gather", ["a", "i"], ["o"], axis=0), {"a": SIX, "i": np.array(2)}),
    "gather_some": (node("Gather", ["a", "i"], ["o"]), {"a": SIX, "i": np.array([0, -1])}),
    "slice": (node("Slice", ["a", "s", "e"], ["o"]), {"a": SIX, "s": np.array([1]), "e": np.array([-1])}),
    "slice_backwards": (
        node("Slice", ["a", "s", "e", "x", "t"], ["o"]),
        {"a": SIX, "s": np.array([5]), "e": np.array([0]), "x": np.array([0]), "t": np.array([-2])},
    ),
    "concat": (node("Concat", ["a", "b"], ["o"], axis=0), {"a": SIX, "b": SIX}),
    "unsqueeze": (node("Unsqueeze", ["a", "x"], ["o"]), {"a": SIX, "x": np.array([0, 2])}),
    "squeeze": (node("Squeeze", ["a", "x"], ["o"]), {"a": SIX[:1], "x": np.array([0])}),
    "squeeze_all": (node("Squeeze", ["a"], ["o"]), {"a": SIX[:1]}),
    "cast": (node("Cast", ["a"], ["o"], to=TensorProto.FLOAT), {"a": SIX}),
    "reshape": (node("Reshape", ["a", "s"], ["o"]), {"a": SIX, "s": np.array([2, -1])}),
    "add": (node("Add", ["a", "b"], ["o"]), {"a": SIX, "b": np.array(1)}),
    "sub": (node("Sub", ["a", "b"], ["o"]), {"a": SIX, "b": SIX[::-1].copy()}),
    "mul": (node("Mul", ["a", "b"], ["o"]), {"a": SIX, "b": SIX}),
    "div": (node("Div", ["a", "b"], ["o"]), {"a": SIX, "b": np.array(2)}),
    "max": (node("Max", ["a", "b"], ["o"]), {"a": SIX, "b": np.array([4])}),
    "min": (node("Min", ["a", "b"], ["o"]), {"a": SIX, "b": np.array([4])}),
    "neg": (node("Neg", ["a"], ["o"]), {"a": SIX}),
    "where": (node("Where", ["c", "a", "b"], ["o"]), {"c": SIX > 4, "a": SIX, "b": -SIX}),
    "equal": (node("Equal", ["a", "b"], ["o"]), {"a": SIX, "b": np.array(4)}),
    "prod": (node("ReduceProd", ["a"], ["o"], keepdims=0), {"a": SIX}),
    "filled": (
        node("ConstantOfShape", ["a"], ["o"], value=numpy_helper.from_array(np.array([5]))),
        {"a": np.array([2, 3])},
    ),
    "range": (node("Range", ["a", "b", "d"], ["o"]), {"a": np.array(1), "b": np.array(9), "d": np.array(3)}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_what_the_runtime_gives(name):
    rule, given = CASES[name]
    found = folded(rule, given, {})
    said = run(rule, given)
    assert (found.shape, found.dtype) == (said.shape, said.dtype)
    np.testing.assert_array_equal(found, said)


def run(rule, given: dict[str, np.ndarray]) -> np.ndarray:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    graph = helper.make_graph([rule], "one", inputs, [helper.make_empty_tensor_value_info("o")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)[0]


def test_a_shape_is_known_where_its_tensor_is():
    assert folded(node("Shape", ["t"], ["o"]), {}, {"t": SHAPE}).tolist() == [7, 3, 8]
    assert folded(node("Shape", ["t"], ["o"], start=1, end=2), {}, {"t": SHAPE}).tolist() == [3]
    assert folded(node("Size", ["t"], ["o"]), {}, {"t": SHAPE}).tolist() == 168
    assert folded(node("Shape", ["t"], ["o"]), {}, {}) is None


def test_a_constant_says_what_it_is():
    assert folded(node("Constant", [], ["o"], value=constant("c", [1, 2])), {}, {}).tolist() == [1, 2]
    assert folded(node("Constant", [], ["o"], value_ints=[3, 4]), {}, {}).tolist() == [3, 4]
    assert folded(node("Constant", [], ["o"], value_float=0.5), {}, {}).tolist() == 0.5


def test_before_opset_10_a_slice_was_told_by_attributes():
    assert folded(node("Slice", ["a"], ["o"], starts=[1], ends=[3]), {"a": SIX}, {}).tolist() == [3, 4]


@pytest.mark.parametrize(
    "rule",
    [
        node("Relu", ["a"], ["o"]),
        node("Gather", ["a", "unknown"], ["o"]),
        node("Gather", ["a", "far"], ["o"]),
        node("Div", ["a", "zero"], ["o"]),
        node("ConstantOfShape", ["huge"], ["o"]),
        node("Range", ["zero", "huge", "one"], ["o"]),
        node("Cast", ["a"], ["o"], to=TensorProto.STRING),
        node("Reshape", ["a", "huge"], ["o"]),
    ],
    ids=lambda rule: rule.op_type,
)
def test_what_cannot_be_worked_out_is_left_alone(rule):
    known = {"a": SIX, "far": np.array(99), "zero": np.array(0), "one": np.array(1), "huge": np.array(10**12)}
    assert folded(rule, known, {}) is None


def test_what_grows_is_left_alone():
    many = np.zeros(MOST_NUMBERS, np.int64)
    assert folded(node("Concat", ["a", "a"], ["o"], axis=0), {"a": many}, {}) is None
