"""P(M): where cards start. What a source makes depends on (seed, card number) and on the network, on nothing else."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine import gaussian
from engine.errors import NoCapsule
from engine.models import chunk_size
from engine.sources.geometric import GEOMETRIC_VERSION, geometric
from engine.sources.latent import CAPSULE_VERSION, LATENT_VERSION, Decoding, around_capsule, without_data
from engine.sources.maze import MAZE_VERSION, mazes
from engine.sources.noise import NOISE_VERSION, noise
from engine.work import ModelInput
from flashcards.contract.capsule import Capsule
from flashcards.contract.image import ImageShape

Patterns = Callable[[int, int, int, ImageShape, tuple[float, float]], np.ndarray]
"""(seed, first card, how many, image, range) -> x_NHWC"""

PATTERNS: dict[str, tuple[Patterns, int]] = {
    "maze": (mazes, MAZE_VERSION),
    "geometric": (geometric, GEOMETRIC_VERSION),
    "noise": (noise, NOISE_VERSION),
}


@dataclass(frozen=True)
class Source:
    name: str
    version: int
    start: Callable[[int, int], torch.Tensor]  # (first card, how many) -> F_0 as x_BCHW, channels last
    starts_as_image: bool
    latent_scale: float | None = None


@torch.inference_mode()
def open_source(
    name: str,
    seed: int,
    network: torch.nn.Module,
    model: ModelInput,
    capsule: Capsule | None,
    device: torch.device,
    by_class: bool = False,
    wide: bool = True,
) -> Source:
    """Ready to start cards of this network. `auto` is resolved before, by `engine.choice`.

    `by_class`: where the capsule has moments of classes and latents come from it, cards of each class in turn, drawn as
    close as the images of the class were. `wide=False`: so close also without classes, to measure by and not to learn.
    """
    if name in PATTERNS:
        patterns, version = PATTERNS[name]

        def start(first: int, count: int) -> torch.Tensor:
            x_NHWC = patterns(seed, first, count, model.input, model.range)
            return torch.from_numpy(x_NHWC).to(device).permute(0, 3, 1, 2)  # channels last, by strides alone

        return Source(name, version, start, starts_as_image=True)

    scale: float | None = None
    if name == "capsule":
        if capsule is None:
            raise NoCapsule("this model has no capsule: measure one where its data is, or take source 'latent'")
        close = around_capsule(capsule) if wide else gaussian.of_capsule(capsule)
        around = (capsule.by_class if by_class else None) or close
    else:
        around, scale = without_data(network, model, device)
    decoding = Decoding(network, around, seed, latent_shape(network, model, device), model.range, device)
    if name == "capsule" and capsule.tones_CQ is not None:
        decoding = decoding.toned(capsule.tones_CQ, chunk_size(model.architecture, model.input))
    version = CAPSULE_VERSION if name == "capsule" else LATENT_VERSION
    return Source(name, version, decoding.start, False, scale)


@torch.inference_mode()
def latent_shape(network: torch.nn.Module, model: ModelInput, device: torch.device) -> tuple[int, ...]:
    height, width, channels = model.input
    return tuple(network.encoder(torch.zeros(1, channels, height, width, device=device)).shape[1:])
