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
from engine.plots import BLUE, DOTS, GREY, STYLE, as_png, drawing

NEEDED = 30
AIMED_AT = 0.8


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
        lines = [_told("pairs of an earlier task and a later one", self.pairs), _told("runs", self.runs)]
        return [*lines, _bias(self.pairs)] if self.pairs else lines


def tracking(steps: Mapping[PurePosixPath, Result]) -> Tracking:
    """Of every flashcards run among these, whatever its size. A step is named within the one before it."""
    pairs, runs, inner = [], [], {step.parent for step in steps}
    for step, result in steps.items():
        if result.get("strategy", {}).get("kind") != "flashcards" or "measures" not in result:
            continue
        found = list(_pairs(steps, step))
        pairs += found
        if found and step not in inner:
            count = len(found)
            mean = (sum(pair.true for pair in found) / count, sum(pair.estimated for pair in found) / count)
            runs.append(Pair(step, *mean))
    return Tracking(pairs, runs)


def rank_correlation(pairs: list[Pair]) -> float:
    if len(pairs) < 3:
        return math.nan
    return float(spearmanr([pair.true for pair in pairs], [pair.estimated for pair in pairs]).statistic)


def scatter(found: Tracking) -> bytes:
    mpl = drawing()
    with mpl.rc_context(STYLE):
        figure = mpl.Figure(figsize=(6, 5.2), dpi=DOTS, layout="constrained")
        axes = figure.subplots()
        true, estimated = ([getattr(pair, side) for pair in found.pairs] for side in ("true", "estimated"))
        axes.scatter(true, estimated, s=18, color=BLUE, alpha=0.6, linewidths=0)
        ends = [min([*true, *estimated, 0]), max([*true, *estimated, 0])]
        axes.plot(ends, ends, color=GREY, linewidth=1, linestyle="--")
        axes.set_xlabel("forgetting on test images, MAE")
        axes.set_ylabel("estimated from cards")
        axes.set_title(f"{len(found.pairs)} pairs, rank correlation {found.over_pairs:.2f}")
        return as_png(mpl, figure)


def _pairs(steps: Mapping[PurePosixPath, Result], step: PurePosixPath) -> Iterator[Pair]:
    row = steps[step]["measures"]
    for place, now in enumerate(row[:-1]):
        learnt = steps[step.parents[len(row) - place - 2]]["measures"][place]["mae"]
        if None not in (learnt, now["mae"], now["estimated_mae"]):
            yield Pair(step, now["mae"] - learnt, now["estimated_mae"] - learnt)


def _told(what: str, pairs: list[Pair]) -> str:
    found = rank_correlation(pairs)
    target = f"{AIMED_AT:g} is the target: {'holds' if found >= AIMED_AT else 'missed'}"
    verdict = f"too few to say, {NEEDED} are needed" if len(pairs) < NEEDED else target
    return f"Spearman's rank correlation {found:.3f} over {len(pairs)} {what}; {verdict}"


def _bias(pairs: list[Pair]) -> str:
    mean = sum(pair.estimated - pair.true for pair in pairs) / len(pairs)
    side = "below: who replays cards of a task errs less on other cards of it than on images" if mean < 0 else "above"
    return f"estimated less true {mean:+.4f} in the mean of the pairs, {side}"
