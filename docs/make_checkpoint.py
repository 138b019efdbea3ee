"""Writes a checkpoint with random weights, to try the API with: python docs/make_checkpoint.py ae.safetensors"""

import sys

import numpy as np
from safetensors.numpy import save_file

from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "ae.safetensors"
    architecture, image = BlkArchitecture(blocks=4, filters=64), ImageShape(32, 32, 3)
    chance = np.random.default_rng(0)
    tensors = {}
    for name, shape in architecture.tensors(image):
        # Glorot's scale for weights keeps signals from dying or exploding on their way through.
        bound = np.sqrt(6 / (9 * (shape[0] + shape[1]))) if len(shape) == 4 else 0.0
        tensors[name] = chance.uniform(-bound, bound, shape).astype(np.float32)
    save_file(tensors, path, {"flashcards.architecture": architecture.name, "flashcards.input": str(image)})
    print(f"wrote {path}: {architecture.name}, {architecture.parameters(image):,} parameters")


if __name__ == "__main__":
    main()
