"""Is the network that we built from a checkpoint the one that its owner has?

Names and shapes of tensors do not say in which order layers run, where a pool or an activation sits, or how pixels were
scaled. A probe does: a few images x, and the answers y that the owner's network gave.
"""

import torch
from safetensors.torch import load_file

from engine.errors import ForwardMismatch
from engine.models import Autoencoder
from engine.work import ModelInput

ALLOWED = 1e-3  # of the range: far above the rounding of any build, far below the effect of any other layer


@torch.inference_mode()
def forward_unverified(network: Autoencoder, model: ModelInput, device: torch.device) -> bool:
    """Whether nothing speaks for the forward pass. Raises where a probe speaks against it."""
    if model.probe is None:
        return not model.made_here
    probe = load_file(model.probe)
    x_BCHW, y_BCHW = (probe[name].to(device).permute(0, 3, 1, 2) for name in ("x", "y"))
    off = (network(x_BCHW) - y_BCHW).abs().max().item()
    allowed = ALLOWED * (model.range[1] - model.range[0])
    if not off <= allowed:
        raise ForwardMismatch(
            f"its answers are off by up to {off:.4g}, and {allowed:.4g} is allowed. Compare your layers with those of "
            f"{model.architecture.name} (order, padding, pooling, {model.architecture.activation} after every layer "
            f"but the last, {model.architecture.head} head), and see that x and y are scaled as the network sees them"
        )
    return False
