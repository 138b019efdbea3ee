"""`vae_{B}_fil_{F}`: a variational autoencoder (Kingma and Welling, 2014) in the shape of the paper's.

While it learns z = mean + deviation * e with e ~ N(0, 1), and to mean |D(z) - x| is added b KL(N(mean, variance) | N(0,
1)) / pixels. With that b it is the negative log-likelihood of a Laplace distribution of width b around D(z), up to a
factor. Everywhere else its latent is the mean, so cards, capsules and measures see an autoencoder as any other.
"""

import torch

from engine.models import blk
from engine.models.layers import Autoencoder, conv
from flashcards.contract.families.vae import VaeArchitecture
from flashcards.contract.image import ImageShape

KL_WEIGHT = 0.02  # b: about the error of a network that has learnt its images well, the range being 1
LONGEST = 10.0  # of a log variance: keeps its exponential within float32


class Encoder(blk.Encoder):
    def __init__(self, architecture: VaeArchitecture, channels: int, generator: torch.Generator | None) -> None:
        super().__init__(architecture, channels, generator)
        self.log_variance = conv(architecture.filters, architecture.filters, generator)

    def forward(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        return self.latent(self.trunk(x_BCHW))

    def distribution(self, x_BCHW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and log variance of every number of the latent."""
        h = self.trunk(x_BCHW)
        return self.latent(h), self.log_variance(h).clamp(-LONGEST, LONGEST)


class VaeAutoencoder(Autoencoder):
    def __init__(
        self, architecture: VaeArchitecture, image: ImageShape, generator: torch.Generator | None = None
    ) -> None:
        encoder = Encoder(architecture, image.channels, generator)
        super().__init__(encoder, blk.Decoder(architecture, image.channels, generator))

    def in_training(self, x_BCHW: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        mean, log_variance = self.encoder.distribution(x_BCHW)
        drawn = torch.randn(mean.shape, generator=generator).to(mean.device)
        y_BCHW = self.decoder(mean + (log_variance / 2).exp() * drawn)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum() / 2
        return y_BCHW, KL_WEIGHT * divergence / x_BCHW.numel()
