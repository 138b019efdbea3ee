"""Networks out of ONNX files, run by ONNX Runtime behind the same interface as those that are built here.

They are looked into, not taught: there is no gradient, and the state dict is empty. Images are x_BCHW here and lie as
the file wants them inside a part; latents keep the sides that they have in the file.
"""

import numpy as np
import onnx
import torch
from onnx import ModelProto
from onnxruntime import InferenceSession
from torch import nn

from engine.errors import NetworkUnfit, OutOfMemory
from engine.models.layers import Autoencoder
from engine.models.onnx_split import decoder_of, encoder_of, needed, part
from engine.onnx_session import name, open_session
from engine.work import ModelInput
from flashcards.contract.architecture import OnnxArchitecture
from flashcards.contract.image import ImageShape

ALONE = 1e-4  # of the spread of the answers: far above rounding, far below what another image would do
TRIED = 3  # images
NO_MEMORY = ("bad_alloc", "Failed to allocate memory", "bad allocation")


def opened(graph: ModelProto, threads: int) -> InferenceSession:
    try:
        return open_session(graph.SerializeToString(), threads)
    except Exception as error:  # ONNX Runtime has one class a status code, and no common one
        raise NetworkUnfit(f"ONNX Runtime does not take its graph: {_words(error)}") from error


def ran(session: InferenceSession, tensors: list[str], given: dict[str, np.ndarray]) -> list[np.ndarray]:
    try:
        return session.run(tensors, given)
    except Exception as error:
        if any(word in str(error) for word in NO_MEMORY):
            raise OutOfMemory("the images and the network do not fit into memory: take smaller images") from error
        raise NetworkUnfit(f"ONNX Runtime could not run its graph: {_words(error)}") from error


class Part(nn.Module):
    """A graph with one tensor in and one out, in float32, one row an image."""

    def __init__(self, graph: ModelProto, batch: int | None, threads: int) -> None:
        super().__init__()
        self.into, self.out, self.batch = graph.graph.input[0].name, graph.graph.output[0].name, batch
        self.session = opened(graph, threads)

    def run(self, x: np.ndarray) -> np.ndarray:
        if self.batch is None:
            return self._pass(x)
        # A graph that is built for one number of images gets that many, the last ones over and over.
        missing = -len(x) % self.batch
        padded = np.concatenate([x, np.repeat(x[-1:], missing, 0)])
        parts = [self._pass(padded[first : first + self.batch]) for first in range(0, len(padded), self.batch)]
        return np.concatenate(parts)[: len(x)]

    def _pass(self, x: np.ndarray) -> np.ndarray:
        (y,) = ran(self.session, [self.out], {self.into: np.ascontiguousarray(x)})
        return y


class Encoder(Part):
    """Images in."""

    def __init__(self, graph: ModelProto, layout: str, batch: int | None, threads: int) -> None:
        super().__init__(graph, batch, threads)
        self.layout = layout

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.run(laid_out(x_BCHW.detach().cpu(), self.layout))).to(x_BCHW.device)


class Decoder(Part):
    """Images out."""

    def __init__(self, graph: ModelProto, layout: str, image: ImageShape, batch: int | None, threads: int) -> None:
        super().__init__(graph, batch, threads)
        self.layout, self.image = layout, image

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return as_images(self.run(z.detach().cpu().numpy()), self.layout, self.image).to(z.device)


class OnnxAutoencoder(Autoencoder):
    def __init__(self, model: ModelProto, architecture: OnnxArchitecture, image: ImageShape, threads: int) -> None:
        layout, batch = architecture.layout, architecture.batch

        def measure(probe: ModelProto, tensors: list[str], count: int) -> list[np.ndarray]:
            empty = laid_out(torch.zeros(count, image.channels, image.height, image.width), layout)
            return ran(opened(probe, threads), tensors, {architecture.image: empty})

        encoder = Encoder(encoder_of(model, architecture), layout, batch, threads)
        super().__init__(encoder, Decoder(decoder_of(model, architecture, measure), layout, image, batch, threads))
        self.backend = name()


class OnnxClassifier(nn.Module):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.backend = name()

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        return self.encoder(x_BCHW)


def load_onnx(model: ModelInput) -> OnnxAutoencoder | OnnxClassifier:
    architecture, threads = model.architecture, torch.get_num_threads()
    graph = onnx.ModelProto.FromString(model.path.read_bytes())
    if isinstance(architecture, OnnxArchitecture):
        network = OnnxAutoencoder(graph, architecture, model.input, threads)
    else:
        whole = part(graph, needed(graph.graph, [architecture.answer]), architecture.image, architecture.answer)
        network = OnnxClassifier(Encoder(whole, architecture.layout, architecture.batch, threads))
    _try_out(network, model)
    return network


def _try_out(network: OnnxAutoencoder | OnnxClassifier, model: ModelInput) -> None:
    """Is it what was read off its graph, and does an image get the same answer in whatever company it comes?"""
    height, width, channels = model.input
    low, high = model.range
    drawn = torch.rand(TRIED, channels, height, width, generator=torch.Generator().manual_seed(0))
    x_BCHW = low + (high - low) * drawn
    y = network(x_BCHW)
    wanted = (TRIED, *model.architecture.answer_shape(model.input))
    if tuple(y.movedim(1, -1).shape if y.ndim == 4 else y.shape) != wanted:
        raise NetworkUnfit(f"to {TRIED} images it answers with {tuple(y.shape)}, and not as its graph says")
    alone = network(x_BCHW[:1])
    spread = max((y.max() - y.min()).item(), 1e-6)
    if torch.isfinite(y).all() and (alone - y[:1]).abs().max().item() > ALONE * spread:
        raise NetworkUnfit(
            "what it answers to an image depends on the images that come with it, as in a network that was exported "
            "while it learnt: export it in evaluation mode"
        )


def laid_out(x_BCHW: torch.Tensor, layout: str) -> np.ndarray:
    match layout:
        case "nchw":
            return x_BCHW.contiguous().numpy()
        case "nhwc":
            return x_BCHW.permute(0, 2, 3, 1).contiguous().numpy()
        case "nhw":
            return x_BCHW[:, 0].contiguous().numpy()
        case _:  # row by row; there is one channel
            return x_BCHW.reshape(len(x_BCHW), -1).contiguous().numpy()


def as_images(y: np.ndarray, layout: str, image: ImageShape) -> torch.Tensor:
    height, width, channels = image
    found = torch.from_numpy(y)
    if found[:1].numel() != image.pixels:
        raise NetworkUnfit(f"an answer of its graph is {tuple(y.shape[1:])}, and no image of {image}")
    if layout == "nchw":
        return found.contiguous(memory_format=torch.channels_last)
    return found.reshape(len(found), height, width, channels).permute(0, 3, 1, 2)


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
