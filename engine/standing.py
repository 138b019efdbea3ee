"""Where a capture stands, as a file to come back to: a line of JSON, then the cards that were made, as they are.

Card i depends on nothing but its number, so a capture that goes on behind the last whole chunk makes the same set, to
the bit. A small set is written down whenever it is time to; a large one each time it has grown by half, so that all
copies together are never more than three times the set.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path

import numpy as np

from engine.cards import CardFile

SMALL = 64 * 2**20  # bytes
GROWTH = 1.5
KEPT = 2  # the newest may still be on its way to the store when the worker dies


@dataclass
class Steps:
    """Smallest, largest and summed step of all cards at each pass, and the time it took, over all attempts.

    A sum is kept exactly, as floats that do not overlap (Shewchuk 1997): shards that are added up give the same mean,
    to the bit, as a capture in one piece.
    """

    gamma1: list[float]
    gamma2: list[float]
    sums: list[list[float]]
    seconds: float = 0.0

    @classmethod
    def begin(cls, r: int) -> "Steps":
        return cls([float("inf")] * r, [0.0] * r, [[] for _ in range(r)])

    def add(self, step_RB: np.ndarray) -> None:
        sums = step_RB.sum(1, dtype=np.float64).tolist()
        self.join(step_RB.min(1), step_RB.max(1), [[total] for total in sums])

    def join(self, gamma1_R: Sequence[float], gamma2_R: Sequence[float], sums_R: Sequence[list[float]]) -> None:
        """With those of other cards."""
        self.gamma1 = np.minimum(self.gamma1, gamma1_R).tolist()
        self.gamma2 = np.maximum(self.gamma2, gamma2_R).tolist()
        for mine, theirs in zip(self.sums, sums_R, strict=True):
            for value in theirs:
                _add_exactly(mine, value)

    def mean(self, count: int) -> list[float]:
        return [fsum(parts) / count for parts in self.sums]


def _add_exactly(parts: list[float], value: float) -> None:
    """`parts` rise in size; what a sum of two floats rounds off is itself a float, and is carried along."""
    kept = []
    for part in parts:
        large, small = (value, part) if abs(value) > abs(part) else (part, value)
        value = large + small
        if lost := small - (value - large):
            kept.append(lost)
    parts[:] = [*kept, value]


def is_worth_it(count: int, kept: int, card_bytes: int) -> bool:
    """`kept` cards are in the last resume point."""
    return count > kept and (count * card_bytes <= SMALL or count >= GROWTH * kept)


def write(folder: Path, cards: CardFile, steps: Steps, build: str) -> Path:
    """Temp, fsync, rename: whole or absent."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{cards.count:08d}.cards"
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        told = {"build": build, "count": cards.count, "steps": asdict(steps)}
        file.write(json.dumps(told).encode() + b"\n")
        cards.copy_to(file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    for old in sorted(folder.glob("*.cards"))[:-KEPT]:
        old.unlink()
    return path


def backend_of(path: Path) -> str:
    """What ran the passes so far: the build without source, version and r in front, and threads and chunk behind."""
    with path.open("rb") as file:
        return json.loads(file.readline())["build"].rsplit("-", 2)[0].split("-", 3)[3]


def take_up(path: Path, cards: CardFile, build: str) -> Steps | None:
    """None: another build made them, and its cards could differ in the last digits from those to come."""
    with path.open("rb") as file:
        told = json.loads(file.readline())
        if told["build"] != build or "steps" not in told:  # an older release wrote them differently
            return None
        cards.take_over(file, told["count"])
    return Steps(**told["steps"])
