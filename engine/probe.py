"""Is the network that we built from a checkpoint the one that its owner has?

Names and shapes of tensors do not say in which order layers run, where a pool or an activation sits, or how pixels were
scaled. A probe does: a few images x, and the answers y that the owner's network gave.
"""

import torch
from safetensors.torch import load_file

from engine.errors import ForwardMismatch
from engine.models import Network
from engine.work import ModelInput
from flashcards.contract.architecture import Onnx

# Of the range, or of the spread of the scores: far above the rounding of any build, far below the effect of any other
# layer.
ALLOWED = 1e-3


@torch.inference_mode()
def forward_unverified(network: Network, model: ModelInput, device: torch.device) -> bool:
    """Whether nothing speaks for the forward pass. Raises where a probe speaks against it."""
    if model.probe is None:
        return not model.made_here
    probe = load_file(model.probe)
    x_BCHW, y = probe["x"].to(device).permute(0, 3, 1, 2), probe["y"].to(device)
    reconstructs = model.architecture.task == "reconstruct"
    answer = network(x_BCHW)
    off = ((answer.permute(0, 2, 3, 1) if reconstructs else answer) - y).abs().max().item()
    spread = model.range[1] - model.range[0] if reconstructs else max(1.0, (y.max() - y.min()).item())
    allowed = ALLOWED * spread
    if not off <= allowed:
        raise ForwardMismatch(
            f"its answers are off by up to {off:.4g}, and {allowed:.4g} is allowed. {_compare(model)}, and see that x "
            "and y are scaled as the network sees them"
        )
    return False


def _compare(model: ModelInput) -> str:
    if isinstance(model.architecture, Onnx):
        return f"See that the ONNX file is of the same network, in evaluation mode ({model.architecture.manner})"
    words = f"{model.architecture.name} (order, padding, pooling, {_layers(model)})"
    return f"Compare your layers with those of {words}"


def _layers(model: ModelInput) -> str:
    architecture = model.architecture
    if architecture.task == "classify":
        return f"{architecture.manner}, scores before a softmax"
    return f"{architecture.activation} after every layer but the last, {architecture.head} head"
