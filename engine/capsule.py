"""Measures what is kept of images when they go, while they are there."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from engine.data import Images
from engine.files import write_whole
from engine.measures import mae_B
from engine.work import ModelInput, Product
from flashcards.contract import capsule
from flashcards.contract.capsule import Capsule
from flashcards.contract.class_moments import ClassMeter, ClassMoments
from flashcards.contract.meter import Meter

CAPSULE = Product("capsule.safetensors", "application/octet-stream")


@torch.inference_mode()
def measure_classes(
    network: torch.nn.Module,
    images: Images,
    class_N: np.ndarray,
    classes: int,
    chunk: int,
    device: torch.device,
    between: Callable[[], None] = lambda: None,
) -> ClassMoments | None:
    """Moments of the latents a class, `class_N` being the class of every image; None where they would be too many."""
    latent = network.encoder(images.batch(np.arange(1), device)).numel()
    if not ClassMeter.fits(classes, latent):
        return None
    meter = ClassMeter(classes, latent)
    for first in range(0, len(images), chunk):
        rows = np.arange(first, min(first + chunk, len(images)))
        meter.add(network.encoder(images.batch(rows, device)).flatten(1).cpu().numpy(), class_N[rows])
        between()
    return meter.moments()


@torch.inference_mode()
def measure(
    network: torch.nn.Module,
    images: Images,
    rows: np.ndarray,
    chunk: int,
    device: torch.device,
    between: Callable[[], None] = lambda: None,
) -> Meter:
    meter = Meter()
    for first in range(0, len(rows), chunk):
        x_BCHW = images.batch(rows[first : first + chunk], device)
        z = network.encoder(x_BCHW)
        error_B = mae_B(x_BCHW, network.decoder(z))
        meter.add(z.cpu().numpy(), error_B.cpu().numpy(), x_BCHW.cpu().numpy(), channel_axis=1)
        between()
    return meter


def save(out: Path, measured: Capsule, product: Product = CAPSULE) -> Product:
    write_whole(out / product.name, measured.to_bytes())
    return product


def of_task(number: int) -> Product:
    """One of the capsules of a learner; 1 is the first task."""
    return replace(CAPSULE, name=f"capsule-{number}.safetensors")


def load(model: ModelInput) -> Capsule | None:
    """The capsule that was handed in with the model, if there is one."""
    return None if model.capsule is None else capsule.read(model.capsule.read_bytes())
