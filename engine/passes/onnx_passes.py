"""ONNX Runtime on a CPU: the graph is built from the weights in memory, by the shortcuts that its kernels like.

Its convs keep feature maps in blocks of channels and run at the speed of a matrix product, with the activation applied
while a block is still in cache. Three layers are written otherwise than the paper draws them, each to the same answer:
- the activation comes after the pool, as in `engine.models.blk`, on a quarter of the pixels;
- the last decoder block, which does a third of all the work, computes its four kinds of pixels (even or odd row, even
  or odd column) as four 2x2 convs on the small image: 16 multiplications where nearest 2x and 3x3 take 36;
- the head takes these four as they are. Putting them together would cost what they save, and a conv with three filters
  runs at half speed. A transposed conv of stride 2 instead spreads each kind onto the large image, and the four add up.

In blocks before the last, interleaving four small images costs more than four convs save.
"""

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from engine.models.blk import BlkAutoencoder, Decoder, Encoder
from engine.onnx_session import name, open_session

__all__ = ["OnnxPasses", "name"]

OPSET, IR_VERSION = 17, 9  # both read by every ONNX Runtime since 1.14
OPS = {torch.tanh_: "Tanh", torch.relu_: "Relu"}
PHASES = [(0, 0), (0, 1), (1, 0), (1, 1)]  # (row, column) modulo 2


class OnnxPasses:
    def __init__(self, network: BlkAutoencoder | Encoder | Decoder, threads: int) -> None:
        self.name = name()
        self.session = open_session(graph_of(network).SerializeToString(), threads)

    def __call__(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        (y_BCHW,) = self.session.run(["y"], {"x": x_BCHW.contiguous().numpy()})
        return torch.from_numpy(y_BCHW)


def graph_of(network: BlkAutoencoder | Encoder | Decoder) -> onnx.ModelProto:
    graph = Graph()
    match network:
        case BlkAutoencoder():
            into, out = network.encoder.stem.in_channels, network.decoder.head.out_channels
            y = decode(graph, network.decoder, encode(graph, network.encoder, "x"))
        case Encoder():
            into, out = network.stem.in_channels, network.latent.out_channels
            y = encode(graph, network, "x")
        case Decoder():
            into, out = network.stem.in_channels, network.head.out_channels
            y = decode(graph, network, "x")
        case _:
            raise TypeError(f"no graph is known for {type(network).__name__}")
    return graph.finished(y, into, out)


def encode(graph: "Graph", encoder: Encoder, x: str) -> str:
    act = OPS[encoder.activation]
    h = graph.op(act, graph.conv(x, encoder.stem))
    for conv in encoder.blocks:
        h = graph.op("MaxPool", graph.conv(h, conv), kernel_shape=[2, 2], strides=[2, 2])
        h = graph.op(act, h)
    return graph.op(act, graph.conv(h, encoder.latent))


def decode(graph: "Graph", decoder: Decoder, z: str) -> str:
    act = OPS[decoder.activation]
    h = graph.op(act, graph.conv(z, decoder.stem))
    twice = graph.constant(np.array([1, 1, 2, 2], np.float32))
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for conv in decoder.blocks[:-1]:
        h = graph.op(act, graph.conv(graph.op("Resize", h, "", twice, **nearest), conv))

    last, head = decoder.blocks[-1], decoder.head
    # Turned about both axes: a transposed conv hands a pixel out where a conv takes it in.
    spread = graph.constant(_numpy(head.weight).transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
    shares = []
    for row, column in PHASES:
        taps = graph.constant(phase(_numpy(last.weight), row, column))
        pads = [1 - row, 1 - column, row, column]
        kind = graph.op("Conv", h, taps, graph.constant(_numpy(last.bias)), kernel_shape=[2, 2], pads=pads)
        biased = [] if shares else [graph.constant(_numpy(head.bias))]
        shape = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": pads}
        shares.append(graph.op("ConvTranspose", graph.op(act, kind), spread, *biased, **shape))
    y = graph.op("Sum", *shares)
    return graph.op("Sigmoid", y) if decoder.end == "sigmoid" else y


def phase(weight_OI33: np.ndarray, row: int, column: int) -> np.ndarray:
    """The 2x2 conv on the small image that gives the pixels of one kind of nearest 2x and this conv."""

    def pair(taps: np.ndarray, axis: int, odd: int) -> np.ndarray:
        # An even pixel sees its left neighbour once and its own source twice; an odd one its own source twice, then
        # its right neighbour.
        first, middle, last = np.moveaxis(taps, axis, 0)
        return np.stack([first + middle, last] if odd else [first, middle + last], axis)

    return pair(pair(weight_OI33, 2, row), 3, column)


class Graph:
    """Nodes and constants, in the order they are asked for."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def conv(self, x: str, conv: nn.Conv2d) -> str:
        weight, bias = self.constant(_numpy(conv.weight)), self.constant(_numpy(conv.bias))
        return self.op("Conv", x, weight, bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def finished(self, y: str, into: int, out: int) -> onnx.ModelProto:
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        ends = [
            helper.make_tensor_value_info(end, TensorProto.FLOAT, ["B", channels, f"{end}H", f"{end}W"])
            for end, channels in (("x", into), ("y", out))
        ]
        graph = helper.make_graph(self.nodes, "passes", ends[:1], ends[1:], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
