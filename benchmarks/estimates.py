"""How well a learner knows, without any image, what it forgot: over all runs with cards among the kept steps.

A pair: one earlier task after one later one. True is M[i][j] - M[j][j], estimated the same from cards; both start from
what was measured while the images were there. A run: a learner as far as it went, with the mean over its tasks.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from scipy.stats import spearmanr

from benchmarks.records import Result

NEEDED = 30


@dataclass(frozen=True)
class Pair:
    run: PurePosixPath
    true: float
    estimated: float


@dataclass(frozen=True)
class Tracking:
    pairs: list[Pair]
    runs: list[Pair]

    @property
    def over_pairs(self) -> float:
        return rank_correlation(self.pairs)

    @property
    def over_runs(self) -> float:
        return rank_correlation(self.runs)

    def told(self) -> list[str]:
        return [_told("pairs of an earlier task and a later one", self.pairs), _told("runs", self.runs)]


def tracking(steps: Mapping[PurePosixPath, Result]) -> Tracking:
    """Of every flashcards run among these, whatever its size. A step is named within the one before it."""
    pairs, runs, inner = [], [], {step.parent for step in steps}
    for step, result in steps.items():
        if result.get("strategy", {}).get("kind") != "flashcards" or "measures" not in result:
            continue
        found = list(_pairs(steps, step))
        pairs += found
        if step not in inner:
            count = len(found)
            mean = (sum(pair.true for pair in found) / count, sum(pair.estimated for pair in found) / count)
            runs.append(Pair(step, *mean))
    return Tracking(pairs, runs)


def rank_correlation(pairs: list[Pair]) -> float:
    if len(pairs) < 3:
        return math.nan
    return float(spearmanr([pair.true for pair in pairs], [pair.estimated for pair in pairs]).statistic)


def _pairs(steps: Mapping[PurePosixPath, Result], step: PurePosixPath) -> Iterator[Pair]:
    row = steps[step]["measures"]
    for place, now in enumerate(row[:-1]):
        learnt = steps[step.parents[len(row) - place - 2]]["measures"][place]["mae"]
        if None not in (learnt, now["mae"], now["estimated_mae"]):
            yield Pair(step, now["mae"] - learnt, now["estimated_mae"] - learnt)


def _told(what: str, pairs: list[Pair]) -> str:
    few = f"; too few to say, {NEEDED} are needed" if len(pairs) < NEEDED else ""
    return f"Spearman's rank correlation {rank_correlation(pairs):.3f} over {len(pairs)} {what}{few}"
