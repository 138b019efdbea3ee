"""A network as an ONNX graph that any runtime reads: its layers as its family draws them, one node each.

`engine.passes.onnx_passes` draws the paper's network by the shortcuts of one runtime. What goes out is drawn plainly:
nearest 2x is a Resize and a batch norm a BatchNormalization, so that other tools find what they know.
Images are x_BCHW in the model's range, B is free, and the latent is a value of that name.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from torch import nn

from engine.models import Network, blk, conv_ae, dense_ae, resnet18, tasknet, tasknet_ae, vae, vgg16
from engine.models.layers import Classifier, NormedConv
from engine.passes.onnx_passes import OPS, Graph
from flashcards.contract.architecture import Architecture
from flashcards.contract.families.vgg16 import POOLED
from flashcards.contract.image import ImageShape

OPSET, IR_VERSION = 18, 8  # 18: a Resize may name the sides it means; both are read by every ONNX Runtime since 1.14
BATCH = "batch"


class Drawing(Graph):
    def conv(self, x: str, conv: nn.Conv2d) -> str:
        weights = [self.constant(_numpy(each)) for each in (conv.weight, conv.bias) if each is not None]
        sides = {"kernel_shape": list(conv.kernel_size), "strides": list(conv.stride), "pads": list(conv.padding) * 2}
        return self.op("Conv", x, *weights, **sides)

    def linear(self, x: str, linear: nn.Linear) -> str:
        return self.op("Gemm", x, self.constant(_numpy(linear.weight)), self.constant(_numpy(linear.bias)), transB=1)

    def norm(self, x: str, norm: nn.Module) -> str:
        if isinstance(norm, nn.Identity):
            return x
        parts = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
        return self.op("BatchNormalization", x, *(self.constant(_numpy(part)) for part in parts), epsilon=norm.eps)

    def pool(self, x: str) -> str:
        return self.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])

    def nearest(self, x: str, **to: list[float] | list[int]) -> str:
        """By `scales` or to `sizes`, of height and width; the source of a pixel is the one that torch takes."""
        scales = self.constant(np.array(to["scales"], np.float32)) if "scales" in to else ""
        sizes = [self.constant(np.array(to["sizes"], np.int64))] if "sizes" in to else []
        where = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.op("Resize", x, "", scales, *sizes, axes=[2, 3], **where)

    def maps(self, x: str, image: ImageShape) -> str:
        height, width, channels = image
        return self.op("Reshape", x, self.constant(np.array([-1, channels, height, width], np.int64)))

    def ended(self, y: str, head: str) -> str:
        return self.op("Sigmoid", y) if head == "sigmoid" else y

    def named(self, x: str, name: str) -> str:
        self.nodes.append(helper.make_node("Identity", [x], [name]))
        return name


def draw(network: Network, architecture: Architecture, image: ImageShape, metadata: dict[str, str]) -> onnx.ModelProto:
    drawing = Drawing()
    latent = drawing.named(_part(drawing, network.encoder, "x"), "latent")
    if isinstance(network, Classifier):
        scores = [drawing.linear(latent, head) for head in network.heads]
        y = drawing.op("Concat", *scores, axis=1)
        answer: list[Any] = [BATCH, architecture.classes]
    else:
        y = _part(drawing, network.decoder, latent)
        answer = [BATCH, image.channels, image.height, image.width]
    drawing.named(y, "y")
    taken = [BATCH, image.channels, image.height, image.width]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", taken), ("y", answer))]
    graph = helper.make_graph(drawing.nodes, architecture.name, ends[:1], ends[1:], drawing.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    model.producer_name = "flashcards"
    helper.set_model_props(model, metadata)
    return model


def _part(drawing: Drawing, part: nn.Module, x: str) -> str:
    return PARTS[type(part)](drawing, part, x)


def _blk_trunk(drawing: Drawing, encoder: blk.Encoder, x: str) -> str:
    act = OPS[encoder.activation]
    h = drawing.op(act, drawing.conv(x, encoder.stem))
    for block in encoder.blocks:
        h = drawing.op(act, drawing.pool(drawing.conv(h, block)))
    return drawing.conv(h, encoder.latent)


def _blk_encoder(drawing: Drawing, encoder: blk.Encoder, x: str) -> str:
    return drawing.op(OPS[encoder.activation], _blk_trunk(drawing, encoder, x))


def _blk_decoder(drawing: Drawing, decoder: blk.Decoder, z: str) -> str:
    act = OPS[decoder.activation]
    h = drawing.op(act, drawing.conv(z, decoder.stem))
    for block in decoder.blocks:
        h = drawing.op(act, drawing.conv(drawing.nearest(h, scales=[2, 2]), block))
    return drawing.ended(drawing.conv(h, decoder.head), decoder.end)


def _stage(drawing: Drawing, stage: conv_ae.Stage, x: str) -> str:
    h = drawing.norm(drawing.conv(x, stage.conv), stage.norm)
    return drawing.op(OPS[stage.activation], drawing.pool(h) if stage.pool else h)


def _conv_encoder(drawing: Drawing, encoder: conv_ae.Encoder, x: str) -> str:
    h = x
    for stage in encoder.stages:
        h = _stage(drawing, stage, h)
    return h if encoder.latent is None else drawing.linear(drawing.op("Flatten", h, axis=1), encoder.latent)


def _conv_decoder(drawing: Drawing, decoder: conv_ae.Decoder, z: str) -> str:
    h = z
    if decoder.stem is not None:
        h = drawing.maps(drawing.op(OPS[decoder.activation], drawing.linear(z, decoder.stem)), decoder.map)
    for stage in decoder.stages:
        h = _stage(drawing, stage, drawing.nearest(h, scales=[2, 2]))
    return drawing.ended(drawing.conv(drawing.nearest(h, scales=[2, 2]), decoder.head), decoder.end)


def _dense_encoder(drawing: Drawing, encoder: dense_ae.Encoder, x: str) -> str:
    h = drawing.op("Flatten", x, axis=1)
    for layer in encoder.layers:
        h = drawing.op(OPS[encoder.activation], drawing.linear(h, layer))
    return drawing.linear(h, encoder.latent)


def _dense_decoder(drawing: Drawing, decoder: dense_ae.Decoder, z: str) -> str:
    h = z
    for layer in decoder.layers:
        h = drawing.op(OPS[decoder.activation], drawing.linear(h, layer))
    return drawing.maps(drawing.ended(drawing.linear(h, decoder.head), decoder.end), decoder.image)


def _normed(drawing: Drawing, layer: NormedConv, x: str) -> str:
    return drawing.norm(drawing.conv(x, layer.conv), layer.norm)


def _tasknet_encoder(drawing: Drawing, encoder: tasknet.Encoder, x: str) -> str:
    h = x
    for stage in encoder.stages:
        h = drawing.op("Relu", _normed(drawing, stage, h))
    h = drawing.op("Relu", drawing.linear(drawing.op("Flatten", h, axis=1), encoder.hidden))
    return drawing.linear(h, encoder.latent)


def _tasknet_decoder(drawing: Drawing, decoder: tasknet_ae.Decoder, z: str) -> str:
    h = drawing.op("Relu", drawing.linear(z, decoder.hidden))
    h = drawing.maps(drawing.op("Relu", drawing.linear(h, decoder.map)), decoder.map_shape)
    for stage, sides in zip(decoder.stages, decoder.grown, strict=True):
        h = drawing.nearest(drawing.op("Relu", _normed(drawing, stage, h)), sizes=list(sides))
    return drawing.ended(drawing.conv(h, decoder.head), decoder.end)


def _block(drawing: Drawing, block: resnet18.Block, x: str) -> str:
    h = drawing.op("Relu", drawing.norm(drawing.conv(x, block.conv1), block.norm1))
    h = drawing.norm(drawing.conv(h, block.conv2), block.norm2)
    around = x if block.shortcut is None else _normed(drawing, block.shortcut, x)
    return drawing.op("Relu", drawing.op("Add", h, around))


def _mean(drawing: Drawing, h: str) -> str:
    """Over places."""
    return drawing.op("Flatten", drawing.op("GlobalAveragePool", h), axis=1)


def _resnet_encoder(drawing: Drawing, encoder: resnet18.Encoder, x: str) -> str:
    h = drawing.op("Relu", _normed(drawing, encoder.stem, x))
    for block in encoder.blocks:
        h = _block(drawing, block, h)
    return _mean(drawing, h)


def _vgg_encoder(drawing: Drawing, encoder: vgg16.Encoder, x: str) -> str:
    h = x
    for place, stage in enumerate(encoder.stages):
        h = _normed(drawing, stage, h)
        h = drawing.op("Relu", drawing.pool(h) if place in POOLED else h)
    return _mean(drawing, h)


PARTS: dict[type[nn.Module], Callable[[Drawing, Any, str], str]] = {
    blk.Encoder: _blk_encoder,
    blk.Decoder: _blk_decoder,
    vae.Encoder: _blk_trunk,  # its latent is the mean, without an activation
    conv_ae.Encoder: _conv_encoder,
    conv_ae.Decoder: _conv_decoder,
    dense_ae.Encoder: _dense_encoder,
    dense_ae.Decoder: _dense_decoder,
    tasknet.Encoder: _tasknet_encoder,
    tasknet_ae.Decoder: _tasknet_decoder,
    resnet18.Encoder: _resnet_encoder,
    vgg16.Encoder: _vgg_encoder,
}


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
