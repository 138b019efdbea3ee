"""A network as a file that other tools run, held against our own forward pass before it goes out: the export job, and
what a tracking server gets of a network that a job has made.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnxruntime
import torch

from engine import capsule
from engine.cards import within
from engine.device import backend, prepare
from engine.drawing import OPSET, draw
from engine.errors import Diverged, ExportMismatch, Stopped
from engine.files import write_whole
from engine.models import Network, chunk_size
from engine.passes import onnx_passes
from engine.probe import forward_unverified
from engine.sources import open_source
from engine.sources.maze import mazes
from engine.weights import load_network
from engine.work import ModelInput, Outcome, Product, Report, Work
from flashcards.contract.results import ExportResult, Parity

ONNX = Product("model.onnx", "application/octet-stream")
ALLOWED = 1e-5  # of the largest answer where that is above 1: a hundred times the rounding, far below any mistake
IMAGES = 64
SEED = 0
CPU = torch.device("cpu")  # where the file is run as well


@dataclass(frozen=True)
class Checked:
    """A graph that answers as its network does, and by how much it was seen to differ."""

    content: bytes
    parity: list[Parity]
    worst: float
    allowed: float


def export(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    began = time.monotonic()
    model = work.model
    network = load_network(model, CPU)
    unverified = forward_unverified(network, model, CPU)
    graph = checked_graph(network, model, work.threads, stop)
    write_whole(work.out / ONNX.name, graph.content)
    result = ExportResult(
        forward_unverified=unverified,
        format="onnx",
        opset=OPSET,
        digest=hashlib.sha256(graph.content).hexdigest(),
        size=len(graph.content),
        parity=graph.parity,
        max_abs_difference=graph.worst,
        allowed=graph.allowed,
        backend=backend(str(CPU)),
        runtime=onnx_passes.name(),
        seconds=time.monotonic() - began,
    )
    return Outcome(result, [ONNX])


def write_graph(model: ModelInput, out: Path) -> Checked:
    """For a tracking server, which nobody waits for: on one thread, beside whatever runs here."""
    prepare(str(CPU), threads=1)
    graph = checked_graph(load_network(model, CPU), model, 1, lambda: False)
    write_whole(out / ONNX.name, graph.content)
    return graph


@torch.inference_mode()
def checked_graph(network: Network, model: ModelInput, threads: int, stop: Callable[[], bool]) -> Checked:
    """Held against the network before anybody gets it."""
    drawn = draw(network, model.architecture, model.input, _metadata(model))
    onnx.checker.check_model(drawn, full_check=True)
    content = drawn.SerializeToString(deterministic=True)
    session = _session(content, threads)
    parity, largest = [], 1.0
    for name, x_BCHW in _inputs(network, model):
        if stop():
            raise Stopped("stopped before the file was held against the network")
        y = network(x_BCHW)
        if not y.isfinite().all():
            raise Diverged(f"the network gives no finite answer to {name} images: look at its weights")
        largest = max(largest, y.abs().max().item())
        off = max(_off(session, x_BCHW, y), _off(session, x_BCHW[:1], y[:1]))  # a batch of one is a batch
        parity.append(Parity(inputs=name, images=len(x_BCHW), max_abs_difference=off))
    worst = max(each.max_abs_difference for each in parity)
    if not worst <= ALLOWED * largest:
        raise ExportMismatch(
            f"ONNX Runtime answers with the file by up to {worst:.3g} otherwise than the network, and "
            f"{ALLOWED * largest:.3g} is allowed: nothing was kept. Retry on another worker, and report it to us"
        )
    return Checked(content, parity, worst, ALLOWED * largest)


def _metadata(model: ModelInput) -> dict[str, str]:
    low, high = model.range
    return {
        "flashcards.architecture": model.architecture.model_dump_json(),
        "flashcards.input": str(model.input),
        "flashcards.range": f"{low!r},{high!r}",
        "flashcards.digest": model.digest,
        "flashcards.task": model.architecture.task,
    }


def _session(content: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; a warning has nobody to read it
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _inputs(network: Network, model: ModelInput) -> Iterator[tuple[str, torch.Tensor]]:
    """Random pixels, the patterns that cards start from, and cards, where the network makes any."""
    height, width, channels = model.input
    low, high = model.range
    count = min(IMAGES, chunk_size(model.architecture, model.input))
    shape = (count, channels, height, width)
    yield "random", low + (high - low) * torch.rand(shape, generator=torch.Generator().manual_seed(SEED))
    maze_NHWC = mazes(SEED, 0, count, model.input, model.range)
    yield "pattern", torch.from_numpy(maze_NHWC).permute(0, 3, 1, 2).contiguous()
    if model.architecture.task == "reconstruct":
        kept = capsule.load(model)
        source = open_source("latent" if kept is None else "capsule", SEED, network, model, kept, CPU)
        yield "card", torch.from_numpy(within(source.start(0, count).contiguous().numpy(), model.range))


def _off(session: onnxruntime.InferenceSession, x_BCHW: torch.Tensor, y: torch.Tensor) -> float:
    (found,) = session.run(["y"], {"x": x_BCHW.numpy()})
    return (torch.from_numpy(found) - y).abs().max().item()
