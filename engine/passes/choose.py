"""Which backend makes a set of cards: the faster one, found by trying, where there is enough work to make it worth it.

Answers of two backends differ in the last digits, so a set is made by one. Who goes on with a set, or makes one again,
names the backend it was made with. On a CPU the two are PyTorch and ONNX Runtime; on CUDA a recorded graph of PyTorch's
kernels, in float32 or, where cards come out the same to the eye, in float16.
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
# So many times as fast a challenger must be: torch where ONNX Runtime was the faster one wherever it was tried, float16
# where float32 has the digits.
CLEARLY = 1.3
AGREE = 1e-5  # of the range of the answers: a hundred times the rounding, far below what a mistake would do
HALF = torch.float16  # not bfloat16, which near 1 moves in steps of 1/256
HALF_AGREES = 1 / 510  # of the range: half a step of the bytes that cards are looked at and mostly kept in
HALF_PASSES = 10  # after so many, since a network may drive rounding apart from pass to pass


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
    low, high = range
    if device.type == "cuda":
        return whole_or_half(network, image, low, high, chunk, device, named)
    by_torch = TorchPasses(network, device)
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
    x_BCHW = _images(count, image, low, high)
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


def whole_or_half(
    network: nn.Module,
    image: ImageShape,
    low: float,
    high: float,
    chunk: int,
    device: torch.device,
    named: str | None = None,
) -> Passes:
    """Half the digits, for several times the speed where a GPU has units for them: if its cards are as good."""
    whole = on_cuda(network, image, chunk, device)
    if named == whole.name:
        return whole
    half = on_cuda(network, image, chunk, device, HALF)
    if named == half.name:
        return half
    x_BCHW = _images(chunk, image, low, high).to(device)
    if not agree(_far(whole, x_BCHW), _far(half, x_BCHW), high - low, HALF_AGREES):
        return whole
    return fastest(half, whole, x_BCHW)


def on_cuda(
    network: nn.Module, image: ImageShape, chunk: int, device: torch.device, half: torch.dtype | None = None
) -> Passes:
    x_BCHW = torch.empty(chunk, image.channels, image.height, image.width, device=device)
    try:
        return CudaPasses(network, x_BCHW, half)
    except RuntimeError:  # a driver that records no graphs; the same kernels run one by one
        return TorchPasses(network, device, half)


def agree(one: torch.Tensor, other: torch.Tensor, span: float, within: float = AGREE) -> bool:
    """Whether two answers to the same images are one up to rounding. Not finite is no answer."""
    span = max(span, (one.max() - one.min()).item())
    return bool((one - other).abs().max() <= within * span)


def fastest(challenger: Passes, favourite: Passes, x_BCHW: torch.Tensor) -> Passes:
    """By turns, so that whatever else the machine does hits both alike; the best time of each counts."""
    candidates = (challenger, favourite)
    best = dict.fromkeys(candidates, float("inf"))
    began = time.perf_counter()
    for _ in range(ROUNDS):
        for passes in candidates:
            start = time.perf_counter()
            passes(x_BCHW).flatten()[0].item()  # a GPU is done when a number can be read
            best[passes] = min(best[passes], time.perf_counter() - start)
        if time.perf_counter() - began > LONGEST_TRIAL:
            break
    # By the clock alone equal jobs could get different backends, and their cards different last digits.
    return challenger if best[challenger] * CLEARLY < best[favourite] else favourite


def _images(count: int, image: ImageShape, low: float, high: float) -> torch.Tensor:
    shape = (count, image.channels, image.height, image.width)
    return low + (high - low) * torch.rand(shape, generator=torch.Generator().manual_seed(0))


def _far(passes: Passes, x_BCHW: torch.Tensor) -> torch.Tensor:
    for _ in range(HALF_PASSES):
        x_BCHW = passes(x_BCHW)
    return x_BCHW
