"""What a denoising learner is shown: images with Gaussian noise on them. What it is to answer: the clean ones."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

FIXED_SEED = 20_210  # of the noise that errors are measured with: the same in every task, so that rows compare


@dataclass(frozen=True)
class Noise:
    deviation: float  # in the values of the network's range
    range: tuple[float, float]
    clip: bool

    def add(self, x_BCHW: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        batch, channels, height, width = x_BCHW.shape
        drawn_BHWC = torch.randn(batch, height, width, channels, generator=generator)
        noisy_BCHW = x_BCHW + self.deviation * drawn_BHWC.to(x_BCHW.device).permute(0, 3, 1, 2)
        return noisy_BCHW.clamp(*self.range) if self.clip else noisy_BCHW

    def fixed(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        """What a measurement sees of its first images."""
        return self.add(x_BCHW, torch.Generator().manual_seed(FIXED_SEED))


def seen_through(
    noise: Noise | None, network: Callable[[torch.Tensor], torch.Tensor]
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The network behind fixed noise, to be measured with: batches of the same sizes in the same order see the same."""
    if noise is None:
        return network
    generator = torch.Generator().manual_seed(FIXED_SEED)
    return lambda x_BCHW: network(noise.add(x_BCHW, generator))
