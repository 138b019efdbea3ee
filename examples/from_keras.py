"""Weights of a Keras autoencoder as the safetensors file that the service takes.

In the script that has the model:

    np.savez("weights.npz", *model.get_weights())

and then, where there is neither Keras nor data:

    python examples/from_keras.py weights.npz ae.safetensors blk_4_fil_64 32x32x3

The layers must be those of docs/checkpoints.md in their order: Conv2D(3, padding="same") throughout, MaxPooling2D and
UpSampling2D (nearest) in between.
"""

import sys

import numpy as np
from safetensors.numpy import save_file

from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import parse_image_shape


def convert(weights: list[np.ndarray], architecture: str, input: str) -> dict[str, np.ndarray]:
    """Keras keeps a kernel as height x width x inputs x outputs, the service as torch does: outputs x inputs first."""
    wanted = architecture_spec.validate_python(architecture).tensors(parse_image_shape(input))
    if len(weights) != len(wanted):
        sys.exit(f"{architecture} has {len(wanted)} tensors, and the file {len(weights)}")
    tensors = {}
    for (name, shape), array in zip(wanted, weights, strict=True):
        tensor = np.ascontiguousarray(array.transpose(3, 2, 0, 1) if array.ndim == 4 else array, np.float32)
        if tensor.shape != tuple(shape):
            sys.exit(f"{name} is {tuple(shape)} in {architecture}, and {tensor.shape} in the file")
        tensors[name] = tensor
    return tensors


def main(source: str, target: str, architecture: str, input: str, pixels: str = "0,1") -> None:
    with np.load(source, allow_pickle=False) as found:
        weights = [found[f"arr_{place}"] for place in range(len(found.files))]
    told = {"architecture": architecture, "input": input, "range": pixels}
    save_file(
        convert(weights, architecture, input), target, {f"flashcards.{name}": text for name, text in told.items()}
    )
    print(f"wrote {target}; to hand it over: flashcards models push {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
