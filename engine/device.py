"""How torch is set before any work, and how to name what ran it."""

import platform
from pathlib import Path

import torch


def prepare(device: str, threads: int) -> None:
    torch.set_num_threads(threads)
    # CUDA has no deterministic form of some backward passes: there, warn and go on. On a CPU every operation used
    # here has one, so anything else is a mistake and raises.
    torch.use_deterministic_algorithms(True, warn_only=torch.device(device).type != "cpu")
    # Deterministic mode would also fill every fresh tensor with NaN; nothing here reads before it writes.
    torch.utils.deterministic.fill_uninitialized_memory = False
    # No autocast on CUDA where networks learn and are measured: near 1 a bfloat16 moves in steps of 1/256, as coarse as
    # the errors in question. cuDNN's convolutions use TF32 by themselves. Cards may pass in float16, where a trial says
    # that they come out the same: see engine.passes.choose.


def backend(device: str) -> str:
    return f"torch-{torch.__version__}-{device}"


def memory(device: str) -> tuple[int, int] | None:
    """Bytes used, by whomever, and bytes in all; None where the device has no memory of its own."""
    if torch.device(device).type != "cuda":
        return None
    free, total = torch.cuda.mem_get_info(device)
    return total - free, total


def processor(device: torch.device) -> str:
    """Its type. Where the type is another, a sum may be taken in another order, and end in other digits."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    named = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return named[0].partition(":")[2].strip() if named else platform.machine()
