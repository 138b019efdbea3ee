"""PyTorch on CUDA, a pass recorded once as a CUDA graph: small layers then cost no launch each.

The kernels are those of an eager pass, in the same order, so the answers and the name are the same too.
"""

import torch
from torch import nn

from engine.passes.torch_passes import TorchPasses

WARM_UPS = 3  # cuDNN chooses its kernels and takes its workspace before anything is recorded


class CudaPasses(TorchPasses):
    """For chunks of one shape; any other shape goes through eagerly."""

    def __init__(self, network: nn.Module, x_BCHW: torch.Tensor, half: torch.dtype | None = None) -> None:
        super().__init__(network, x_BCHW.device, half)
        # A graph reads and writes where it did when it was recorded.
        self.x_BCHW = torch.empty_like(x_BCHW, memory_format=torch.channels_last)
        self.graph, self.y_BCHW = self._record()

    @torch.inference_mode()
    def _record(self) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        self.x_BCHW.zero_()
        side = torch.cuda.Stream(self.x_BCHW.device)
        side.wait_stream(torch.cuda.current_stream(self.x_BCHW.device))
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                self.pass_through(self.x_BCHW)
        torch.cuda.current_stream(self.x_BCHW.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y_BCHW = self.pass_through(self.x_BCHW)
        return graph, y_BCHW

    @torch.inference_mode()
    def __call__(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        if x_BCHW.shape != self.x_BCHW.shape:
            return super().__call__(x_BCHW)
        self.x_BCHW.copy_(x_BCHW)
        self.graph.replay()
        return self.y_BCHW.clone()  # the next replay writes over it
