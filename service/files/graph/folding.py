"""Small numbers that follow from shapes alone, such as the target of a reshape: worked out before anything runs.

ONNX's own inference follows some of these chains and gives up on others that exporters write, torch's among them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from service.files.tensors import Values

MOST_NUMBERS = 1024  # of one such tensor
CASTS = {1: "f4", 6: "i4", 7: "i8", 9: "?", 11: "f8"}

Known = Mapping[str, Values]
Shapes = Mapping[str, tuple[int, ...]]
Attributes = dict[str, Any]


def folded(node: NodeProto, known: Known, shapes: Shapes) -> Values | None:
    """What the node gives, where that is known already."""
    if len(node.output) != 1 or not node.output[0]:
        return None
    told = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    try:
        found = _worked_out(node, told, known, shapes)
    except (ValueError, IndexError, TypeError, KeyError, ArithmeticError):
        return None  # ONNX's inference says what is wrong with it
    return found if found is not None and found.size <= MOST_NUMBERS else None


def _worked_out(node: NodeProto, told: Attributes, known: Known, shapes: Shapes) -> Values | None:
    if node.op_type == "Constant":
        return _constant(told)
    if node.op_type in ("Shape", "Size"):
        return _measured(node, told, shapes)
    if node.op_type not in RULES or any(name and name not in known for name in node.input):
        return None
    return RULES[node.op_type]([known[name] if name else None for name in node.input], told)


def _constant(told: Attributes) -> Values | None:
    if "value" in told:
        return numpy_helper.to_array(told["value"])
    if "value_int" in told or "value_ints" in told:
        return np.array(told.get("value_int", told.get("value_ints")), np.int64)
    if "value_float" in told or "value_floats" in told:
        return np.array(told.get("value_float", told.get("value_floats")), np.float32)
    return None


def _measured(node: NodeProto, told: Attributes, shapes: Shapes) -> Values | None:
    shape = shapes.get(node.input[0])
    if shape is None:
        return None
    if node.op_type == "Size":
        return np.array(np.prod(shape, dtype=np.int64))
    return np.array(shape[told.get("start", 0) : told.get("end", len(shape))], np.int64)


def _axes(given: list[Any], told: Attributes) -> tuple[int, ...] | None:
    if len(given) > 1 and given[1] is not None:
        return tuple(given[1].reshape(-1).tolist())
    return tuple(told["axes"]) if "axes" in told else None


def _unsqueeze(given: list[Any], told: Attributes) -> Values:
    return np.expand_dims(given[0], _axes(given, told) or ())


def _slice(given: list[Any], told: Attributes) -> Values:
    if len(given) == 1:  # before opset 10 it was told by attributes
        given = [given[0], np.array(told["starts"]), np.array(told["ends"]), np.array(told.get("axes", ()))]
        given = given if given[3].size else given[:3]
    value, starts, ends, *more = given
    axes = more[0] if more and more[0] is not None else np.arange(len(starts))
    steps = more[1] if len(more) > 1 and more[1] is not None else np.ones(len(starts), np.int64)
    places = [slice(None)] * value.ndim
    for axis, *span in zip(axes.tolist(), starts.tolist(), ends.tolist(), steps.tolist(), strict=True):
        places[axis] = slice(*span)
    return np.asarray(value[tuple(places)])


def _reshape(given: list[Any], told: Attributes) -> Values:
    value, target = given
    if told.get("allowzero"):
        raise ValueError("not worth following")
    sides = [value.shape[place] if side == 0 else side for place, side in enumerate(target.tolist())]
    return np.asarray(value.reshape(sides))


def _divided(given: list[Any], told: Attributes) -> Values:
    one, other = given
    if one.dtype.kind == "f":
        return np.asarray(one / other)
    if (one < 0).any() or (other <= 0).any():
        raise ValueError("rounding differs below zero")
    return np.asarray(one // other)


def _filled(given: list[Any], told: Attributes) -> Values:
    sides = given[0].tolist()
    if np.prod(sides, dtype=np.float64) > MOST_NUMBERS:
        raise ValueError("too many")
    value = numpy_helper.to_array(told["value"]) if "value" in told else np.zeros(1, np.float32)
    return np.full(sides, value.reshape(-1)[0], value.dtype)


def _ranged(given: list[Any], told: Attributes) -> Values:
    start, limit, delta = (each.item() for each in given)
    if not 0 <= (limit - start) / delta <= MOST_NUMBERS:
        raise ValueError("too many")
    return np.arange(start, limit, delta).astype(given[0].dtype)


RULES: dict[str, Callable[[list[Any], Attributes], Values]] = {
    "Identity": lambda given, told: given[0],
    "Cast": lambda given, told: given[0].astype(CASTS[told["to"]]),
    "Gather": lambda given, told: np.take(given[0], given[1], told.get("axis", 0)),
    "Slice": _slice,
    "Concat": lambda given, told: np.concatenate(given, told["axis"]),
    "Unsqueeze": _unsqueeze,
    "Squeeze": lambda given, told: np.squeeze(given[0], _axes(given, told)),
    "Reshape": _reshape,
    "Add": lambda given, told: given[0] + given[1],
    "Sub": lambda given, told: given[0] - given[1],
    "Mul": lambda given, told: given[0] * given[1],
    "Div": _divided,
    "Max": lambda given, told: np.maximum.reduce(np.broadcast_arrays(*given)),
    "Min": lambda given, told: np.minimum.reduce(np.broadcast_arrays(*given)),
    "Neg": lambda given, told: -given[0],
    "Floor": lambda given, told: np.floor(given[0]),
    "Ceil": lambda given, told: np.ceil(given[0]),
    "Equal": lambda given, told: given[0] == given[1],
    "Where": lambda given, told: np.where(given[0], given[1], given[2]),
    "ReduceProd": lambda given, told: np.prod(
        given[0], _axes(given, told), keepdims=bool(told.get("keepdims", 1)), dtype=given[0].dtype
    ),
    "ConstantOfShape": _filled,
    "Range": _ranged,
}
