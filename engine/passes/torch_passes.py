"""PyTorch, layer by layer, channels last; or a network that brings its own machinery."""

import torch
from torch import nn

from engine.device import backend


class TorchPasses:
    def __init__(self, network: nn.Module, device: torch.device) -> None:
        self.name = getattr(network, "backend", None) or backend(str(device))
        self.network = network

    @torch.inference_mode()
    def __call__(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        # Patterns already lie in memory like this; only what other code hands in is copied.
        return self.network(x_BCHW.contiguous(memory_format=torch.channels_last))
