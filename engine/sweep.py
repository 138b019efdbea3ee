"""Some cards, followed pass by pass: how far each pass moves them, and how close it brings their latents to the data's.

Splitting f into its halves gives the latents for nothing: z_k = E(F_k), F_{k+1} = D(z_k).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.gaussian import Gaussian, spread
from engine.sources import Source

AHEAD = 2  # a minimum counts if none of the next two values lies below it


@dataclass
class Sweep:
    step_RN: list[np.ndarray] = field(default_factory=list)  # mean |F_k - F_{k-1}| of every card, k = 1 .. R
    flsd: list[float] | None = None  # after 0 .. R passes
    spread: list[float] = field(default_factory=list)

    @property
    def gamma1(self) -> list[float]:
        return [float(step_N.min()) for step_N in self.step_RN]

    @property
    def gamma2(self) -> list[float]:
        return [float(step_N.max()) for step_N in self.step_RN]

    @property
    def mean_step(self) -> list[float]:
        return [float(step_N.mean()) for step_N in self.step_RN]


@torch.inference_mode()
def sweep(
    network: torch.nn.Module,
    source: Source,
    count: int,
    passes: int,
    chunk: int,
    against: Gaussian | None,
    after_pass: Callable[[int, list[torch.Tensor]], None] = lambda number, x: None,
    between: Callable[[], None] = lambda: None,
) -> Sweep:
    """`after_pass` sees F_0 .. F_R as they come; `between` runs after every chunk and may raise.

    A pass that leaves the finite numbers is the last one: nothing comes back from there.
    """
    parts = _begin(source, count, chunk)
    seen = Sweep(flsd=None if against is None else [])
    after_pass(0, parts)
    for number in range(1, passes + 1):
        latents, steps = [], []
        for place, x_BCHW in enumerate(parts):
            z = network.encoder(x_BCHW)
            parts[place] = network.decoder(z)
            steps.append((parts[place] - x_BCHW).abs().mean((1, 2, 3)).cpu().numpy())
            latents.append(z.flatten(1).cpu().numpy())
            between()
        _note(seen, latents, against)
        seen.step_RN.append(np.concatenate(steps))
        after_pass(number, parts)
        if not np.isfinite(seen.step_RN[-1]).all():
            break
    _note(seen, [network.encoder(x_BCHW).flatten(1).cpu().numpy() for x_BCHW in parts], against)
    return seen


@torch.inference_mode()
def cards_at(
    network: torch.nn.Module,
    source: Source,
    count: int,
    passes: list[int],
    chunk: int,
    between: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """The cards of a sweep once more, after each of these numbers of passes, in ascending order."""
    parts, done = _begin(source, count, chunk), 0
    for r in sorted(set(passes)):
        while done < r:
            for place, x_BCHW in enumerate(parts):
                parts[place] = network(x_BCHW)
                between()
            done += 1
        yield r, parts


def _begin(source: Source, count: int, chunk: int) -> list[torch.Tensor]:
    return [source.start(first, chunk)[: count - first] for first in range(0, count, chunk)]


def _note(seen: Sweep, latents: list[np.ndarray], against: Gaussian | None) -> None:
    z_ND = np.concatenate(latents)
    finite = bool(np.isfinite(z_ND).all())
    seen.spread.append(spread(z_ND) if finite else float("inf"))
    if seen.flsd is not None:
        seen.flsd.append(against.frechet(z_ND) if finite else float("inf"))


def first_minimum(values: list[float], start: int = 0) -> int:
    """Property P2 of the paper: the first place behind which the distance grows."""
    for place in range(start, len(values)):
        if all(values[place] <= later for later in values[place + 1 : place + 1 + AHEAD]):
            return place
    return len(values) - 1
