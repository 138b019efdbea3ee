"""Images out of nothing: latents from N(0, 1), decoded by a variational autoencoder."""

import math

import numpy as np
import torch

from engine.errors import Diverged
from engine.hashing import keys, normals
from engine.models import Autoencoder
from engine.strategies.setting import Setting
from flashcards.contract.families.vae import VaeArchitecture

LANE = 4


@torch.inference_mode()
def prior_samples(
    setting: Setting, network: Autoencoder, architecture: VaeArchitecture, count: int, seed: int
) -> np.ndarray:
    """x_NHWC, in chunks of one size, as cards are made."""
    height, width, channels = architecture.latent_shape(setting.images.shape)
    parts = []
    for first in range(0, count, setting.chunk):
        drawn = normals(keys(seed, first, setting.chunk), LANE, math.prod((height, width, channels)))
        z_BHWC = torch.from_numpy(drawn.astype(np.float32)).view(-1, height, width, channels).to(setting.device)
        x_BCHW = network.decoder(z_BHWC.permute(0, 3, 1, 2))[: count - first]
        parts.append(x_BCHW.permute(0, 2, 3, 1).cpu().numpy())
        setting.between()
    samples_NHWC = np.ascontiguousarray(np.concatenate(parts))
    if not np.isfinite(samples_NHWC).all():
        raise Diverged("what the generator draws is not finite: look at its weights, or begin the learner anew")
    return samples_NHWC
