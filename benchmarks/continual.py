"""`make bench-continual`: learners that go through five datasets, by every strategy, beside what keeps real images.

The same minibatches of new images for all: as many epochs, no early stop. Strategies that replay take as many old
samples beside them, `flashcards` by default twice as many. `joint` goes over the images of all tasks so far, so by the
fifth task it takes five times the steps; `joint_at_par` has all those images too and replays them as the others do, at
their budget. Every task that is done is kept, so the command can be stopped and goes on where it was; its figures are
in docs/reproduction/steps.

`--bar ten`: ten tasks, each dataset in two halves. `--bar estimates`: what cards say of forgetting against the truth,
over all runs that are kept. `--bar plasticity`: what was tried to give the new task more room, see trials.py.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table

from benchmarks import trials
from benchmarks.estimates import NEEDED, tracking
from benchmarks.lab import Size, spread
from benchmarks.real import data_folder
from benchmarks.records import Records, add_places, records_of
from benchmarks.sequences import RECONSTRUCTION, SEQUENCE5, TEN, Course, Learnt, Method, Scenario
from engine.strategies.flashcards import FlashcardsReplay

ROOT = Path(__file__).parents[1]
ARCHITECTURES = {16: "blk_3_fil_32", 32: "blk_4_fil_32"}
AT_PAR = "joint_at_par"
EQUAL = "equal numbers"
GATES = ("mazes", "vae_replay", "lwf", "naive")
Found = dict[str, list[Learnt]]


def methods(images: int, cards: int) -> dict[str, Method]:
    share = max(1, images // 10)
    every = [
        Method("flashcards", {"kind": "flashcards", "count": cards, "ratio": "auto"}),
        Method("mazes", {"kind": "flashcards", "count": cards, "source": "maze", "r": 10, "ratio": 1.0}),
        Method("vae_replay", {"kind": "vae_replay", "count": cards}),
        Method("lwf", {"kind": "lwf"}),
        Method("naive", {"kind": "naive"}),
        Method("joint", {"kind": "joint"}),
        Method(AT_PAR, {"kind": "coreset"}, size_a_task=images),
        # A tenth of each task's images, so it grows with every task.
        Method("coreset", {"kind": "coreset"}, size_a_task=share),
    ]
    return {method.name: method for method in every}


def equal_numbers(cards: int) -> Method:
    """As many cards as images in a batch, as in the paper."""
    return Method(EQUAL, {"kind": "flashcards", "count": cards, "ratio": 1.0})


def tried(cards: int) -> dict[str, Method]:
    """Equal numbers, and one thing changed at a time; what helped became the default."""
    equal = equal_numbers(cards).config
    configs: dict[str, dict[str, Any]] = {
        "flashcards": {"ratio": "auto"},
        "half as many cards": {"ratio": 0.5},
        "weight 0.3": {"weight": 0.3},
        "weight 0.5": {"weight": 0.5},
        "weight 2": {"weight": 2.0},
        "fresh cards": {"fresh": True},
        "latents": {"source": "latent"},
        "one pass more": {"r": 1},
    }
    classes: dict[str, type[FlashcardsReplay]] = {
        "rising weight": trials.Rising,
        "falling weight": trials.Falling,
        "slow start": trials.SlowStart,
        "best half by P1": trials.Trusted,
        "latents held": trials.LatentsHeld,
        "a quarter mazes": trials.MixedSources,
        "channels matched": trials.ChannelsMatched,
        "moments matched": trials.MomentsMatched,
    }
    every = [
        equal_numbers(cards),
        *(Method(name, equal | config) for name, config in configs.items()),
        *(Method(name, equal, trial=trial) for name, trial in classes.items()),
    ]
    return {method.name: method for method in every}


@dataclass(frozen=True)
class Asked:
    tasks: tuple[str, ...]
    methods: list[Method]
    architecture: str
    scenario: Scenario = RECONSTRUCTION

    def found(self, course: Course) -> Found:
        return {
            method.name: [
                course.learn(self.tasks, method, seed, self.architecture, self.scenario) for seed in course.size.seeds
            ]
            for method in self.methods
        }


def mean(found: Found, name: str, figure: str) -> float:
    return statistics.mean(getattr(each, figure) for each in found[name])


def table(found: Found) -> Table:
    strategy = Column("strategy", no_wrap=True)
    figures = ("AvgMAE", "BWT", "x at par", "x joint", "x coreset", "MB", "seconds")
    shown = Table(strategy, *figures, box=SIMPLE, pad_edge=False)
    for name, chains in found.items():
        ratios = (_ratio(found, name, other) for other in (AT_PAR, "joint", "coreset"))
        memory, seconds = mean(found, name, "memory"), mean(found, name, "seconds")
        shown.add_row(
            name,
            spread([each.average for each in chains]),
            spread([each.bwt for each in chains], "+"),
            *ratios,
            f"{memory:.2f}",
            f"{seconds:.0f}",
        )
    return shown


def remarks(found: Found) -> list[str]:
    """Which figures are of networks that had gone wrong."""
    lines = []
    for name, chains in found.items():
        for each in chains:
            if each.diverged:
                lines.append(f"{name}: {each.diverged}")
            if each.collapsed:
                lines.append(f"{name}: no better than one constant image on {', '.join(each.collapsed)} when learnt")
    return lines


def gates(found: Found) -> list[tuple[str, bool]]:
    """The default strategy against every other that keeps no image. A figure that is not a number does not hold."""
    rows = []
    for other in (name for name in GATES if name in found and "flashcards" in found):
        mae, theirs = mean(found, "flashcards", "average"), mean(found, other, "average")
        rows.append((f"AvgMAE of flashcards {mae:.4f} below {other}'s {theirs:.4f}", mae < theirs))
        bwt, theirs = mean(found, "flashcards", "bwt"), mean(found, other, "bwt")
        rows.append((f"BWT of flashcards {bwt:+.4f} above {other}'s {theirs:+.4f}", bwt > theirs))
    return rows


def targets(found: Found) -> list[tuple[str, bool]]:
    if "flashcards" not in found:
        return []
    own, rows = mean(found, "flashcards", "average"), []
    for other, most in ((AT_PAR, 1.06), ("joint", 1.06), ("coreset", 1.02), ("mazes", 0.85)):
        if other in found:
            ratio = own / mean(found, other, "average")
            rows.append((f"AvgMAE {ratio:.3f} of that of {other}, at most {most:.2f}", ratio <= most))
    bwt = mean(found, "flashcards", "bwt")
    return [*rows, (f"BWT {bwt:+.4f}, at least -0.003", bwt >= -0.003)]


def ten_targets(found: Found) -> list[tuple[str, bool]]:
    memory = mean(found, "flashcards", "memory")
    ratios = {
        other: mean(found, "flashcards", "average") / mean(found, other, "average")
        for other in (AT_PAR, "joint")
        if other in found
    }
    return [
        *(
            (f"AvgMAE after ten tasks {ratio:.3f} of that of {other}, at most 1.15", ratio <= 1.15)
            for other, ratio in ratios.items()
        ),
        (f"memory beside the network {memory:.2f} MB, at most 2", memory <= 2),
    ]


def tell(console: Console, what: str, rows: list[tuple[str, bool]]) -> bool:
    for words, holds in rows:
        console.print(f"{what}: {words}: {'holds' if holds else 'FAILS'}")
    return all(holds for _, holds in rows)


def compare(course: Course, asked: Asked, bars: Callable[[Found], list[tuple[str, bool]]]) -> bool:
    """True: every bar holds."""
    course.walk(lambda _: asked.found(course) and None)
    found, size, console = asked.found(course), course.size, course.console
    console.print(table(found))
    console.print(
        f"{asked.scenario.key}: {' -> '.join(asked.tasks)}; {asked.architecture}, {size.image}, {size.images} images "
        f"a dataset, {size.epochs} epochs a task, seeds {size.seeds}"
    )
    console.print("MB: kept beside the network after the last task: capsules, images, whatever the strategy needs")
    console.print(*remarks(found), sep="\n")
    return tell(console, "gate", bars(found))


def plasticity(course: Course, asked: Asked) -> bool:
    """No bar: which change helps is for the reader, who sees the spread over the seeds."""
    return compare(course, asked, lambda _: [])


def sequence(course: Course, asked: Asked) -> bool:
    held = compare(course, asked, gates)
    tell(course.console, "target", targets(asked.found(course)))
    return held


def ten(course: Course, asked: Asked) -> bool:
    compare(course, asked, lambda _: [])
    return tell(course.console, "target", ten_targets(asked.found(course)))


def estimates(records: Records, console: Console) -> bool:
    found = tracking(records.every())
    for line in found.told():
        console.print(line)
    return len(found.pairs) >= NEEDED


BARS: dict[str, Callable[[Course, Asked], bool]] = {
    "sequence": sequence,
    "ten": ten,
    "plasticity": plasticity,
}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.continual", description=__doc__)
    parser.add_argument("--bar", choices=(*BARS, "estimates"), default="sequence")
    parser.add_argument("--scenario", choices=("reconstruction", "denoising"), default="reconstruction")
    parser.add_argument("--noise", type=float, default=Scenario.noise)
    parser.add_argument("--strategies", help="as in flashcards,naive; default: all")
    parser.add_argument("--datasets", default=",".join(SEQUENCE5))
    parser.add_argument("--architecture", help="default: blk_3_fil_32 for 16 pixels, blk_4_fil_32 for 32")
    parser.add_argument("--side", type=int, default=16)
    parser.add_argument("--images", type=int, default=Size.images)
    parser.add_argument("--tests", type=int, default=Size.tests)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--cards", type=int, default=5000, help="cards, or draws of a generator, in all")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, default=Size.threads)
    add_places(parser)
    given = parser.parse_args(words)
    if given.bar == "estimates":
        return 0 if estimates(records_of(given), Console()) else 1
    seeds = tuple(map(int, given.seeds.split(",")))
    size = Size(given.images, given.tests, given.epochs, seeds, given.side, given.threads)
    is_ten = given.bar == "ten"
    known = tried(given.cards) if given.bar == "plasticity" else methods(given.images, given.cards)
    names = (
        given.strategies.split(",") if given.strategies else ["flashcards", AT_PAR, "joint"] if is_ten else list(known)
    )
    asked = Asked(
        TEN if is_ten else tuple(given.datasets.split(",")),
        [known[name] for name in names],
        given.architecture or ARCHITECTURES.get(given.side, ARCHITECTURES[32]),
        Scenario(given.scenario, given.noise),
    )
    course = Course(given.folder, data_folder(), size, records=records_of(given))
    return 0 if BARS[given.bar](course, asked) else 1


def _ratio(found: Found, name: str, other: str) -> str:
    return f"{mean(found, name, 'average') / mean(found, other, 'average'):.3f}" if other in found else "-"


if __name__ == "__main__":
    raise SystemExit(main())
