"""What `auto` means: the source that this network allows, and how many passes that source needs.

Both are decided by looking at a few cards. With a capsule the Frechet distance of their latents decides. Without one,
random latents are taken unless the decoder makes one and the same picture of them all, or a graph of another framework
has connections that go round its middle; then mazes are left.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine import gaussian
from engine.gaussian import Gaussian
from engine.sources import Source, open_source
from engine.sweep import Sweep, first_minimum, sweep
from engine.work import ModelInput, Report
from flashcards.contract.capsule import Capsule

SAMPLE = 256
SAMPLE_BYTES = 2**26  # of its images; large ones make a smaller sample
PAPER_R = 10
LOOKED_AT = 20  # passes; the paper finds its minimum between 10 and 20
ENOUGH = 1.1  # of the distance at its minimum: the paper finds the choice not to be critical
ALIKE = 0.02  # of the range: decoded latents whose pixels differ by less than this are one picture


@dataclass(frozen=True)
class Bench:
    """What every look at a few cards needs."""

    network: torch.nn.Module
    model: ModelInput
    capsule: Capsule | None
    device: torch.device
    chunk: int
    between: Callable[[], None]
    wide: bool = True  # cards to learn from; else cards to measure by, as close to the data as the capsule knows

    @property
    def around(self) -> Gaussian | None:
        return None if self.capsule is None else gaussian.of_capsule(self.capsule)

    def sample(self, count: int) -> int:
        return min(count, SAMPLE, max(self.chunk, SAMPLE_BYTES // (4 * self.model.input.pixels)))

    def open(self, name: str, seed: int, by_class: bool = False) -> Source:
        return open_source(name, seed, self.network, self.model, self.capsule, self.device, by_class, self.wide)

    def look(self, source: Source, passes: int, count: int = SAMPLE) -> Sweep:
        return sweep(
            self.network,
            source,
            self.sample(count),
            passes,
            self.chunk,
            self.around,
            between=self.between,
        )


def choose_source(bench: Bench, asked: str, seed: int, report: Report) -> Source:
    if asked != "auto":
        return bench.open(asked, seed)
    if bench.capsule is not None:
        found = {name: bench.open(name, seed) for name in ("capsule", "latent")}
        distance = {name: bench.look(source, 0).flsd[0] for name, source in found.items()}
        best = min(distance, key=lambda name: (distance[name], name))
        told = ", ".join(f"{name} {value:.4g}" for name, value in distance.items())
        report.note(f"source {best}: its latents are the closest to those of the capsule (FLSD: {told})")
        return found[best]
    if not _has_a_middle(bench.model):
        report.note("source maze: what all paths of the graph pass through is no smaller than an image, and no latent")
        return bench.open("maze", seed)
    source = bench.open("latent", seed)
    x_BCHW = source.start(0, bench.chunk)
    low, high = bench.model.range
    if x_BCHW.std(0).mean().item() >= ALIKE * (high - low):
        report.note("source latent: there is no capsule, so latents are drawn without knowing the data's")
        return source
    report.note("source maze: the decoder makes one and the same picture of random latents")
    return bench.open("maze", seed)


def _has_a_middle(model: ModelInput) -> bool:
    """Of our own families the decoder is known; that of a graph begins where all paths meet, maybe at its very ends."""
    return model.architecture.family != "onnx" or math.prod(model.architecture.latent) < model.input.pixels


def choose_r(bench: Bench, asked: int | str, source: Source, report: Report) -> int:
    if asked != "auto":
        return int(asked)
    if not source.starts_as_image:
        return 0
    if bench.capsule is None:
        report.note(f"r {PAPER_R}, as in the paper: without a capsule nothing says how close cards have come")
        return PAPER_R
    r = first_minimum(bench.look(source, LOOKED_AT).flsd, start=1)
    report.note(f"r {r}: the first minimum of FLSD against the capsule")
    return r
