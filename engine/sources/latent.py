"""Cards that start in the latent space: a latent is drawn, the decoder makes an image of it, and that is F_0.

Nothing but the checkpoint is needed. Where a capsule is there, latents are drawn from its Gaussian (source `capsule`);
where none is, from one around the latents of mazes (source `latent`).
"""

import numpy as np
import torch

from engine.gaussian import Gaussian
from engine.hashing import keys
from engine.sources.maze import mazes
from engine.work import ModelInput

LATENT_VERSION = 1  # changes when the same seed would give other latents
LANE = 2
LOOKED_AT = 64  # mazes


def decoded(
    network: torch.nn.Module,
    gaussian: Gaussian,
    seed: int,
    first: int,
    count: int,
    latent: tuple[int, ...],
    device: torch.device,
) -> torch.Tensor:
    """Cards number first .. first + count - 1 before any pass, as x_BCHW."""
    z_ND = gaussian.draw(keys(seed, first, count), LANE).astype(np.float32)
    z = torch.from_numpy(z_ND.reshape(count, *latent)).to(device)
    return network.decoder(z.contiguous(memory_format=torch.channels_last) if z.ndim == 4 else z)


@torch.inference_mode()
def without_data(network: torch.nn.Module, model: ModelInput, device: torch.device) -> tuple[Gaussian, float]:
    """Isotropic, as wide as the latents of mazes are on average; and that width."""
    x_NHWC = mazes(0, 0, LOOKED_AT, model.input, model.range)
    z = network.encoder(torch.from_numpy(x_NHWC).to(device).permute(0, 3, 1, 2))
    z_ND = z.flatten(1).cpu().double().numpy()
    scale = float(np.sqrt(z_ND.var(0).mean()))
    size = z_ND.shape[1]
    flat = Gaussian(np.zeros(size), factor_KD=np.zeros((0, size)), deviation_D=np.full(size, scale))
    return flat, scale
