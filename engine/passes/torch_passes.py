"""PyTorch, layer by layer, channels last; or a network that brings its own machinery."""

from contextlib import nullcontext

import torch
from torch import nn

from engine.device import backend


class TorchPasses:
    """With `half`, layers that are worth it take numbers of that type. Images are float32 on both ends all the same."""

    def __init__(self, network: nn.Module, device: torch.device, half: torch.dtype | None = None) -> None:
        self.name = getattr(network, "backend", None) or backend(str(device))
        if half is not None:
            self.name += f"-{str(half).removeprefix('torch.')}"
        self.network, self.device, self.half = network, device, half

    @torch.inference_mode()
    def __call__(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        # Patterns already lie in memory like this; only what other code hands in is copied.
        return self.pass_through(x_BCHW.contiguous(memory_format=torch.channels_last))

    def pass_through(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        with nullcontext() if self.half is None else torch.autocast(self.device.type, self.half):
            return self.network(x_BCHW).float()
