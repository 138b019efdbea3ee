"""What stands in the cells of the report on continual learning: of the learners of one strategy, by seed.

Where there is none, nothing was run.
"""

from pathlib import Path

import numpy as np

from benchmarks import continual
from benchmarks.lab import spread
from benchmarks.reports import NOT_RUN, Lines
from benchmarks.sequences import Learnt, Scenario

Runs = dict[int, Learnt]  # by seed


def bars(scenario: Scenario, found: dict[str, Runs]) -> Lines:
    """Each other strategy on the seeds that both have, then what is asked of flashcards alone."""
    own, lines = found.get("flashcards", {}), []
    for name in (*continual.GATES, continual.AT_PAR, "joint", "coreset", None):
        shared = [seed for seed in own if name is None or seed in found.get(name, {})]
        if shared:
            beside = {} if name is None else {name: [found[name][seed] for seed in shared]}
            asked = {"flashcards": [own[seed] for seed in shared]} | beside
            *against, alone = continual.targets(asked)
            rows = [alone] if name is None else [*continual.gates(asked), *against]
            told = f"{scenario.key}, {len(shared)} seed(s)"
            lines += [f"- {told}: {words}: {'holds' if holds else 'missed'}" for words, holds in rows]
    return lines


def mean_of(values: list[float], sign: str = "") -> str:
    return spread(values, sign) if values else NOT_RUN


def bwt(found: Runs) -> str:
    return mean_of([chain.bwt for chain in found.values()], "+")


def error_at(found: Runs, place: int) -> str:
    """The error on one task after the last."""
    return mean_of([chain.last[place] for chain in found.values()])


def costs(found: Runs) -> tuple[str, str, str]:
    minutes = f"{np.mean([chain.seconds for chain in found.values()]) / 60:.1f}" if found else NOT_RUN
    return megabytes(found, "network"), megabytes(found, "memory"), minutes


def megabytes(found: Runs, what: str) -> str:
    return f"{np.mean([getattr(chain, what) for chain in found.values()]):.2f}" if found else NOT_RUN


def average(found: Runs) -> float:
    return float(np.mean([chain.average for chain in found.values()]))


def times(found: Runs, other: Runs) -> str:
    over = ratio(found, other)
    return NOT_RUN if over is None else f"{over:.3f}"


def ratio(found: Runs, other: Runs) -> float | None:
    """Of the averages, on the seeds that both have."""
    shared = [seed for seed in found if seed in other]
    if not shared:
        return None
    ours, theirs = (average({seed: runs[seed] for seed in shared}) for runs in (found, other))
    return ours / theirs


def printed(mae: float | None, bwt: float | None) -> str:
    return "-" if mae is None else f"{mae:.3f}" if bwt is None else f"{mae:.3f}, {bwt:+.2f}"


def listed(values: list[float] | tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def picture(picture: Path, docs: Path) -> str:
    return f"![{picture.stem}]({picture.relative_to(docs).as_posix()})"
