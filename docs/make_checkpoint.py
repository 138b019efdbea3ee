"""Writes a checkpoint with random weights, to try the API with: python docs/make_checkpoint.py ae.safetensors"""

import sys

import numpy as np
from safetensors.numpy import save_file

from flashcards.contract.architecture import Architecture


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "ae.safetensors"
    architecture = Architecture(blocks=4, filters=64)
    chance = np.random.default_rng(0)
    tensors = {}
    for name, shape in architecture.tensors(channels=3):
        # Glorot's scale for weights keeps signals from dying or exploding on their way through.
        bound = np.sqrt(6 / (9 * (shape[0] + shape[1]))) if len(shape) == 4 else 0.0
        tensors[name] = chance.uniform(-bound, bound, shape).astype(np.float32)
    save_file(tensors, path, {"flashcards.architecture": architecture.name, "flashcards.input": "32x32x3"})
    print(f"wrote {path}: {architecture.name}, {architecture.parameters(3):,} parameters")


if __name__ == "__main__":
    main()
