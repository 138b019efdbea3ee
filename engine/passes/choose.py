"""Which backend makes a set of cards: the faster one, found by trying, where there is enough work to make it worth it.

Answers of two backends differ in the last digits, so a set is made by one. Who goes on with a set, or makes one again,
names the backend it was made with.
"""

import time
from collections.abc import Callable

import torch
from torch import nn

from engine.passes import Passes
from engine.passes.cuda_passes import CudaPasses
from engine.passes.torch_passes import TorchPasses
from flashcards.contract.image import ImageShape

RATE = 25e9  # multiplications a second of one core: only the order of magnitude counts
SHARE = 0.02  # of the whole work that trying may take
START_SECONDS = 0.1  # to build the graph and make its first pass
LONGEST_TRIAL = 0.3  # seconds
TRIAL_IMAGES = 16
ROUNDS = 3
CLEARLY = 1.3  # so many times as fast torch must be to be taken: ONNX Runtime was the faster one wherever it was tried
AGREE = 1e-5  # of the range of the answers: a hundred times the rounding, far below what a mistake would do


def choose(
    network: nn.Module,
    image: ImageShape,
    range: tuple[float, float],
    *,
    multiplications: int,  # of one image's pass
    images: int,  # that pass through in all, each as often as it does
    chunk: int,
    device: torch.device,
    threads: int,
    note: Callable[[str], None],
    named: str | None = None,  # the backend to take, if it is here
) -> Passes:
    if hasattr(network, "backend"):  # it is run by what it was loaded with
        return TorchPasses(network, device)
    by_torch = on_cuda(network, image, chunk, device) if device.type == "cuda" else TorchPasses(network, device)
    if device.type != "cpu" or named == by_torch.name:
        return by_torch
    seconds = multiplications * images / (RATE * threads)
    if seconds * SHARE < START_SECONDS and not (named or "").startswith("onnxruntime-"):
        return by_torch
    by_onnx = on_onnx(network, threads, note)
    if by_onnx is None or named == by_onnx.name:
        return by_onnx or by_torch

    allowed = min(LONGEST_TRIAL, seconds * SHARE) * RATE * threads / (2 * (1 + ROUNDS))
    count = max(1, min(TRIAL_IMAGES, chunk, int(allowed / multiplications)))
    low, high = range
    shape = (count, image.channels, image.height, image.width)
    x_BCHW = low + (high - low) * torch.rand(shape, generator=torch.Generator().manual_seed(0))
    if not agree(by_torch(x_BCHW), by_onnx(x_BCHW), high - low):
        note(f"{by_onnx.name} gives other answers than torch for this network, so torch makes the cards")
        return by_torch
    return fastest(by_torch, by_onnx, x_BCHW)


def on_onnx(network: nn.Module, threads: int, note: Callable[[str], None]) -> Passes | None:
    try:
        from engine.passes.onnx_passes import OnnxPasses  # half a second of imports, and it may not be installed

        return OnnxPasses(network, threads)
    except Exception as error:  # whatever is wrong with it, torch is there
        note(f"ONNX Runtime cannot be used here, so torch makes the cards, more slowly: {error}")
        return None


def on_cuda(network: nn.Module, image: ImageShape, chunk: int, device: torch.device) -> Passes:
    x_BCHW = torch.empty(chunk, image.channels, image.height, image.width, device=device)
    try:
        return CudaPasses(network, x_BCHW)
    except RuntimeError:  # a driver that records no graphs; the same kernels run one by one
        return TorchPasses(network, device)


def agree(one: torch.Tensor, other: torch.Tensor, span: float) -> bool:
    """Whether two answers to the same images are one up to rounding. Not finite is no answer."""
    span = max(span, (one.max() - one.min()).item())
    return bool((one - other).abs().max() <= AGREE * span)


def fastest(by_torch: Passes, by_onnx: Passes, x_BCHW: torch.Tensor) -> Passes:
    """By turns, so that whatever else the machine does hits both alike; the best time of each counts."""
    candidates = (by_torch, by_onnx)
    best = dict.fromkeys(candidates, float("inf"))
    began = time.perf_counter()
    for _ in range(ROUNDS):
        for passes in candidates:
            start = time.perf_counter()
            passes(x_BCHW)
            best[passes] = min(best[passes], time.perf_counter() - start)
        if time.perf_counter() - began > LONGEST_TRIAL:
            break
    # By the clock alone equal jobs could get different backends, and their cards different last digits.
    return by_torch if best[by_torch] * CLEARLY < best[by_onnx] else by_onnx
