"""The latent of a graph: a tensor that every path from the image to the answer passes through, and the smallest such.

Nodes come in an order in which each only uses what is there. Right after such a tensor is made, nothing else is there
that later nodes need: whatever was before it has been used up, or a path would lead past it.
"""

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from onnx import NodeProto, TensorProto

from service.files.errors import BadFile
from service.files.graph.ops import ACTIVATIONS
from service.files.graph.shapes import Tensor
from service.files.tensors import is_name
from service.files.words import quoted

NO_LATENT = "no latent was found"
SHOWN = 6
#: What belongs to the layer before it: a latent ends behind them.
SAME_LAYER = frozenset(f"{ACTIVATIONS} Add Sub Mul Div BatchNormalization LayerNormalization Identity Dropout".split())


class Cut(NamedTuple):
    name: str
    latent: tuple[int, ...]  # sides for one image
    makers: frozenset[str]  # operators between it and the cut before it

    @property
    def size(self) -> int:
        return prod(self.latent)


def cuts(nodes: Sequence[NodeProto], image: str, answer: str, tensors: dict[str, Tensor], batch: int) -> list[Cut]:
    """In the order of the graph, the image and the answer left out."""
    live = _live(nodes, image, answer)
    ahead = Counter(name for node in nodes if live.intersection(node.output) for name in {*node.input} & live)
    open_now, makers = {image}, set[str]()
    found: list[Cut] = []
    for node in nodes:
        made = live.intersection(node.output)
        if not made:
            continue
        for name in {*node.input} & live:
            ahead[name] -= 1
            if not ahead[name]:
                open_now.discard(name)
        open_now |= made
        makers.add(node.op_type)
        latest = next(iter(made))
        if open_now == {latest} and latest != answer and _is_latent(latest, tensors, batch):
            found.append(Cut(latest, tensors[latest].shape[1:], frozenset(makers)))
            makers.clear()
    return found


def _live(nodes: Sequence[NodeProto], image: str, answer: str) -> set[str]:
    """What comes of the image and goes into the answer."""
    down, up = {image}, {answer}
    for node in nodes:
        if down.intersection(node.input):
            down.update(filter(None, node.output))
    for node in reversed(nodes):
        if up.intersection(node.output):
            up.update(filter(None, node.input))
    return down & up


def _is_latent(name: str, tensors: dict[str, Tensor], batch: int) -> bool:
    """Can it be drawn, one row an image, and called by its name?"""
    dtype, shape = tensors[name]
    return dtype == TensorProto.FLOAT and len(shape) > 1 and shape[0] == batch and is_name(name)


def choose(found: Sequence[Cut], named: str | None) -> Cut:
    if named is not None:
        return _named(found, named)
    if not found:
        raise BadFile(
            NO_LATENT,
            "there is no tensor, one row an image, that all paths from the image to the answer pass through: with "
            "connections that skip the middle nothing can be drawn there; export the network without them",
        )
    place = min(range(len(found)), key=lambda each: found[each].size)
    while place + 1 < len(found) and _goes_on(found[place], found[place + 1]):
        place += 1
    return found[place]


def _goes_on(cut: Cut, after: Cut) -> bool:
    return after.latent == cut.latent and after.makers <= SAME_LAYER


def _named(found: Sequence[Cut], named: str) -> Cut:
    for cut in found:
        if cut.name == named:
            return cut
    smallest = sorted(found, key=lambda cut: cut.size)[:SHOWN]
    others = ", ".join(f"{quoted(cut.name)} ({cut.size:,} numbers)" for cut in smallest) or "none"
    raise BadFile(NO_LATENT, f"not everything passes through {quoted(named)}; it does through: {others}")
