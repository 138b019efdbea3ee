"""How torch is set before any work, and how to name what ran it."""

import torch


def prepare(device: str, threads: int) -> None:
    torch.set_num_threads(threads)
    # CUDA has no deterministic form of some backward passes: there, warn and go on. On a CPU every operation used
    # here has one, so anything else is a mistake and raises.
    torch.use_deterministic_algorithms(True, warn_only=torch.device(device).type != "cpu")
    # Deterministic mode would also fill every fresh tensor with NaN; nothing here reads before it writes.
    torch.utils.deterministic.fill_uninitialized_memory = False
    # No autocast on CUDA: near 1 a bfloat16 moves in steps of 1/256, as coarse as the errors that are measured here.
    # cuDNN's convolutions use TF32 by themselves.


def backend(device: str) -> str:
    return f"torch-{torch.__version__}-{device}"
