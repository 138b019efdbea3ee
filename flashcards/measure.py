"""Measure a capsule where the data is, with the network that is there: no service, and no framework of ours.

    capsule = flashcards.measure_capsule(model, loader)
    Path("capsule.safetensors").write_bytes(capsule.to_bytes())

The network is any object with `encoder` and `decoder` that can be called, and a batch is what its encoder takes: an
array or a tensor, or a tuple that begins with one, as loaders give images with their labels. All is measured in numpy.

Images are (N, C, H, W). As in an upload, (N, H, W) are images of one channel, and (N, D) vectors, also of one.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flashcards.contract.capsule import Capsule
from flashcards.contract.meter import Meter


def measure_capsule(module: Any, loader: Iterable[Any], digest: str | None = None) -> Capsule:
    """One pass over the images. `digest` is the SHA-256 of the weights' file, where there is one.

    Hand in the images the network learnt from, scaled as it sees them. Raises ValueError with the reason in words.
    """
    meter = Meter()
    shape: tuple[int, ...] | None = None
    with _at_rest(module):
        for batch in loader:
            given = batch[0] if isinstance(batch, tuple | list) else batch
            z = module.encoder(given)
            x, latent, y = _array(given, "a batch"), _array(z, "the encoder"), _array(module.decoder(z), "the decoder")
            shape = shape or x.shape[1:]
            _check(x, latent, y, shape, meter.latent)
            error_N = np.abs(x - y).reshape(len(x), -1).mean(1, dtype=np.float64)
            meter.add(latent, error_N, x if x.ndim == 4 else x[:, None], channel_axis=1)
    return meter.capsule(digest)


def _array(value: Any, whose: str) -> NDArray[np.floating]:
    if isinstance(value, tuple | list | dict):
        raise ValueError(f"{whose} gives a {type(value).__name__}: one array is needed, of images or of their latents")
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        # numpy has no bfloat16, and half floats overflow where errors are summed.
        value = (value.float() if value.element_size() < 4 else value).numpy()
    found = np.asarray(value)
    return found if np.issubdtype(found.dtype, np.floating) else found.astype(np.float64)


def _check(x: Any, z: Any, y: Any, shape: tuple[int, ...], latent: tuple[int, ...]) -> None:
    if x.ndim < 2:
        raise ValueError(
            f"a batch has the shape {x.shape}: its first axis counts images, and none is left for an image"
        )
    if x.shape[1:] != shape:
        raise ValueError(f"images differ in shape: {shape}, then {x.shape[1:]}")
    if y.shape != x.shape:
        raise ValueError(f"the decoder answers images of {x.shape} with {y.shape}: this is no autoencoder of them")
    if z.ndim < 2 or len(z) != len(x):
        raise ValueError(f"the encoder gives {z.shape} for {len(x)} images: one latent an image is needed")
    if latent and z.shape[1:] != latent:
        raise ValueError(f"latents differ in shape: {latent}, then {z.shape[1:]}")


@contextmanager
def _at_rest(module: Any) -> Iterator[None]:
    """Dropout and batch norm as in use, no gradients; and afterwards every part in the mode it was in."""
    wholes = [whole for whole in (module, module.encoder, module.decoder) if hasattr(whole, "eval")]
    parts = [part for whole in wholes for part in (whole.modules() if hasattr(whole, "modules") else [whole])]
    modes = [(part, part.training) for part in parts if hasattr(part, "training")]
    with ExitStack() as stack:
        if torch := sys.modules.get("torch"):  # whoever hands in its tensors has imported it
            stack.enter_context(torch.no_grad())
        for whole in wholes:
            whole.eval()
        try:
            yield
        finally:
            for part, training in modes:
                part.training = training
