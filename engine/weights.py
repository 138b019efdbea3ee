"""Networks as files: safetensors, with what it takes to build the network again in the metadata; or ONNX."""

from pathlib import Path

import torch
from safetensors.torch import load_file

from engine.files import safetensors_bytes, write_whole
from engine.models import Network, build
from engine.work import ModelInput, Product
from flashcards.contract.architecture import Architecture, Onnx
from flashcards.contract.image import ImageShape

WEIGHTS = Product("model.safetensors", "application/octet-stream")


def save_weights(
    path: Path,
    weights: dict[str, torch.Tensor],
    architecture: Architecture,
    image: ImageShape,
    range: tuple[float, float],
) -> None:
    metadata = {
        "flashcards.architecture": architecture.model_dump_json(),
        "flashcards.input": str(image),
        "flashcards.range": ",".join(_shortest(end) for end in range),
    }
    write_whole(path, safetensors_bytes(weights, metadata))


def load_network(model: ModelInput, device: torch.device) -> Network:
    """Frozen: it is looked into, not taught."""
    if isinstance(model.architecture, Onnx):
        from engine.models.onnx import load_onnx  # half a second of imports

        return load_onnx(model)
    network = build(model.architecture, model.input)
    network.load_state_dict(load_file(model.path))
    return network.to(device).requires_grad_(False).eval()


def _shortest(number: float) -> str:
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)
