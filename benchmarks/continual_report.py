"""The sections of docs/reproduction-continual.md, each a few lines of Markdown. Pictures go beside the report.

A figure is the mean over the seeds whose learners came to their end; where those are fewer than were asked for the cell
says how many, and where there are none it says that it was not run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import cells, continual, paper
from benchmarks.cells import Runs
from benchmarks.continual import EQUAL
from benchmarks.estimates import scatter, tracking
from benchmarks.reports import NOT_RUN, Lines, header, row
from benchmarks.sequences import RECONSTRUCTION, SEQUENCE5, TEN, Course, Method, Scenario

NOISES = (0.1, 0.15, 0.2, 0.25, 0.3)
DENOISING = Scenario("denoising")
NAMES = {
    "flashcards": "flashcards from capsules",
    EQUAL: "the same, as many cards as images in a batch",
    "mazes": "flashcards from mazes, r = 10 (the paper's)",
    "naive": "naive (SFT)",
    "joint": "joint: all images, again with every task",
    continual.AT_PAR: "joint, at the budget of the others",
    "vae_replay": "vae_replay (AE + VAE)",
    "coreset": "coreset, a tenth of every task",
}


def methods(images: int, cards: int) -> dict[str, Method]:
    """The paper keeps 500 and 5000 images in all, of 50,000 or so a task: the same shares here."""
    others = [
        *(Method(f"coreset {part} %", {"kind": "coreset", "size": max(1, images * part // 100)}) for part in (1, 10)),
        Method("ewc", {"kind": "ewc"}),
        Method("si", {"kind": "si"}),
        Method("cl_vae", {"kind": "cl_vae", "count": cards}),
    ]
    known = continual.methods(images, cards)
    default = {"flashcards": known.pop("flashcards"), EQUAL: continual.equal_numbers(cards)}
    return default | known | {method.name: method for method in others}


@dataclass
class Report:
    course: Course
    architecture: str
    docs: Path
    cards: int = 5000

    @property
    def methods(self) -> dict[str, Method]:
        return methods(self.course.size.images, self.cards)

    def runs(self, method: Method, tasks: tuple[str, ...], scenario: Scenario = RECONSTRUCTION) -> Runs:
        """Those that came to their end."""
        learn, seeds = self.course.learn, self.course.size.seeds
        found = {seed: learn(tasks, method, seed, self.architecture, scenario) for seed in seeds}
        return {seed: chain for seed, chain in found.items() if chain.is_over}

    def of(self, name: str, tasks: tuple[str, ...], scenario: Scenario = RECONSTRUCTION) -> Runs:
        return self.runs(self.methods[name], tasks, scenario)

    def figures(self, found: Runs) -> tuple[str, str]:
        """AvgMAE and BWT."""
        if any(chain.diverged for chain in found.values()):
            return "diverged", "-"
        asked = len(self.course.size.seeds)
        few = f" ({len(found)} of {asked} seeds)" if 0 < len(found) < asked else ""
        return f"{cells.mean_of([chain.average for chain in found.values()])}{few}", cells.bwt(found)

    def table3(self) -> Lines:
        head = ("strategy", "network MB", "MB beside it", "minutes")
        head += ("reconstruction: MAE", "BWT", "the paper", "denoising: MAE", "BWT", "the paper")
        lines = [
            f"{' -> '.join(SEQUENCE5)}. MB after the last task; beside the network: capsules, images, state.",
            "Minutes of one learner, all tasks and what is measured after each.",
            "",
            *header(*head),
        ]
        found = {
            scenario: {name: self.of(name, SEQUENCE5, scenario) for name in self.methods}
            for scenario in (RECONSTRUCTION, DENOISING)
        }
        for name in self.methods:
            theirs = paper.TABLE3.get(name, (None,) * 4)
            plain, noisy = (found[scenario][name] for scenario in (RECONSTRUCTION, DENOISING))
            ours = (
                *cells.costs(plain or noisy),
                *self.figures(plain),
                cells.printed(*theirs[:2]),
                *self.figures(noisy),
            )
            lines.append(row(NAMES.get(name, name), *ours, cells.printed(*theirs[2:])))
        bars = [line for scenario in found for line in cells.bars(scenario, found[scenario])]
        return [*lines, "", *bars, "", *self._curves()]

    def _curves(self) -> Lines:
        shown = {name: self.of(name, SEQUENCE5) for name in ("flashcards", "mazes", "naive")}
        pictures = [self._picture(runs, "forgetting.png", f"{name}-forgetting.png") for name, runs in shown.items()]
        cards = [self._picture(shown[name], "cards.png", f"{name}-cards.png") for name in ("flashcards", "mazes")]
        return [
            "The error on every task as the learner goes on, and the cards of the last task, first seed.",
            "",
            *header(*(NAMES[name] for name in shown)),
            row(*pictures),
            row(*cards, ""),
        ]

    def sequence3(self) -> Lines:
        lines: Lines = []
        for tasks, theirs in paper.SEQUENCE3.items():
            lines += header("strategy", *tasks, "average", "BWT", "the paper", "its average")
            for name in (continual.AT_PAR, "joint", "naive", "coreset 10 %", "mazes", EQUAL, "flashcards"):
                found, told = self.of(name, tasks), theirs.get(name)
                each = [cells.error_at(found, place) for place in range(len(tasks))]
                beside = (cells.listed(told), f"{np.mean(told):.4f}") if told else ("-", "-")
                lines.append(row(NAMES.get(name, name), *each, *self.figures(found), *beside))
            lines.append("")
        return [*lines, "The paper prints one joint row under all three orders; it is permuted here with its columns."]

    def noise(self) -> Lines:
        lines = [
            "Gaussian noise of this deviation, the range being 1; noisy images are cut to the range.",
            "",
            *header("noise", "strategy", "MAE", "BWT", *SEQUENCE5),
        ]
        shown = []
        for noise in NOISES:
            for name in ("flashcards", EQUAL):
                found = self.of(name, SEQUENCE5, Scenario("denoising", noise))
                each = [cells.error_at(found, place) for place in range(len(SEQUENCE5))]
                lines.append(row(f"{noise:g}", NAMES[name], *self.figures(found), *each))
            if noise in (NOISES[0], NOISES[-1]):
                shown.append(self._seen(self.of("flashcards", SEQUENCE5, Scenario("denoising", noise)), noise))
        return [*lines, "", *(line for group in shown for line in group)]

    def _seen(self, found: Runs, noise: float) -> Lines:
        first, last = (
            self._picture(found, f"reconstructions-{number}.png", f"noise-{noise:g}-{task}.png")
            for number, task in ((1, SEQUENCE5[0]), (len(SEQUENCE5), SEQUENCE5[-1]))
        )
        return [*header(f"{SEQUENCE5[0]} after all tasks, noise {noise:g}", SEQUENCE5[-1]), row(first, last), ""]

    def ten(self) -> Lines:
        times = ("times joint at their budget", "times joint")
        lines = header("strategy", "MAE", "BWT", "MB", *times, "first task when learnt, after the last")
        joints = [self.of(name, TEN) for name in (continual.AT_PAR, "joint")]
        for name in ("joint", continual.AT_PAR, "flashcards", EQUAL, "naive"):
            found = self.of(name, TEN)
            first = cells.mean_of([chain.matrix()[0][0] for chain in found.values()])
            faded = f"{first}, {cells.error_at(found, 0)}" if found else NOT_RUN
            lines.append(
                row(
                    NAMES.get(name, name),
                    *self.figures(found),
                    cells.megabytes(found, "memory"),
                    *(cells.times(found, joint) for joint in joints),
                    faded,
                )
            )
        picture = self._picture(self.of("flashcards", TEN), "forgetting.png", "ten-forgetting.png")
        return [
            "Each dataset in two: by class, the lower labels first; Omniglot, with its many, by place.",
            "",
            *lines,
            "",
            picture,
        ]

    def estimates(self) -> Lines:
        """Of all that is kept, so after the others."""
        for name in ("flashcards", "mazes"):
            self.of(name, SEQUENCE5)
        found, picture = tracking(self.course.records.every()), self.pictures / "estimates.png"
        if self.course.planning or not found.pairs:
            return [f"{NOT_RUN}: no learner with cards is among the kept steps."]
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(scatter(found))
        return [
            "What a learner says of its own forgetting without an image, against what test images say: M[i][j] -",
            "M[j][j], over all runs with cards that are kept, of every size and with every change that was tried.",
            "",
            *(f"- {line}" for line in found.told()),
            "",
            cells.picture(picture, self.docs),
        ]

    def plasticity(self) -> Lines:
        """The first three tasks of five are Sequence3, and their steps are shared."""
        tried, three = continual.tried(self.cards), SEQUENCE5[:3]
        both = {name: [self.runs(method, tasks) for tasks in (SEQUENCE5, three)] for name, method in tried.items()}
        lines = [
            "As many cards as images in a batch, as in the paper, and one thing changed at a time",
            "(`benchmarks/trials.py` says what); `flashcards`, the default, has twice as many. *when new*: the mean",
            "error on each task right after it was learnt, which is what replay costs. *times*: AvgMAE over that of",
            "equal numbers, on the seeds that both have; below 1 the change helps.",
            "",
            *header("what was changed", "five tasks: MAE", "BWT", "when new", "times", "three: MAE", "BWT", "times"),
        ]
        for name, (five, first) in both.items():
            times = [cells.times(runs, equal) for runs, equal in zip((five, first), both[EQUAL], strict=True)]
            new = cells.mean_of([chain.learnt for chain in five.values()])
            lines.append(row(name, *self.figures(five), new, times[0], *self.figures(first), times[1]))
        return [*lines, "", self._what_helped(both)]

    def _what_helped(self, both: dict[str, list[Runs]]) -> str:
        """Over all seeds, and at a first look over fewer."""
        asked, equal = len(self.course.size.seeds), both[EQUAL]
        whole, few = [], []
        for name in (name for name in both if name != EQUAL):
            seeds = min(len(ours.keys() & theirs.keys()) for ours, theirs in zip(both[name], equal, strict=True))
            if seeds:
                (whole if seeds == asked else few).append(name)
        missing = [name for name in both if name not in (EQUAL, *whole, *few)]
        told = [
            f"Better on both, in the mean of {asked} seed(s): {_better(whole, both)}." if whole else "",
            f"At a first look, over fewer seeds: {_better(few, both)}, of {len(few)}." if few else "",
            f"{NOT_RUN.capitalize()}: {', '.join(missing)}." if missing else "",
        ]
        return " ".join(line for line in told if line)

    def naive(self) -> Lines:
        lines = [
            "The paper's SFT row, 0.552, is at the level of networks that collapsed. Here every run says on which",
            "tasks it told images apart no better than one constant image: where there is none, it merely forgot.",
            "",
            *header("seed", "collapsed on", "MAE", "BWT", "when learnt", "after the last task"),
        ]
        found = self.of("naive", SEQUENCE5)
        for seed in self.course.size.seeds:
            if seed not in found:
                lines.append(row(str(seed), *[NOT_RUN] * 5))
                continue
            chain = found[seed]
            figures = ("diverged", "-") if chain.diverged else (f"{chain.average:.4f}", f"{chain.bwt:+.4f}")
            figures += (cells.listed([each[-1] for each in chain.matrix()]), cells.listed(chain.last))
            lines.append(row(str(seed), ", ".join(chain.collapsed) or "none", *figures))
        return lines

    @property
    def pictures(self) -> Path:
        """By size: a picture of another one would belie its table."""
        return self.docs / "reproduction" / "continual" / self.course.size.name

    def _picture(self, found: Runs, made: str, name: str) -> str:
        """Of the last step of the first seed; a chain that diverged has none."""
        target, chain = self.pictures / name, next(iter(found.values()), None)
        if chain is None:
            return NOT_RUN
        kept = self.course.keep_picture(chain.steps[-1], made, target)
        return cells.picture(target, self.docs) if kept else "not kept"


def _better(names: Lines, both: dict[str, list[Runs]]) -> str:
    """Which of these err less than equal numbers, on five tasks and on three."""
    equal = both[EQUAL]
    found = [
        name
        for name in names
        if all(cells.ratio(ours, theirs) < 1 for ours, theirs in zip(both[name], equal, strict=True))
    ]
    return ", ".join(found) or "none"


SECTIONS: dict[str, tuple[str, Callable[[Report], Lines]]] = {
    "table3": ("Reconstruction and denoising of five datasets (Table 3)", Report.table3),
    "naive": ("Learning without any memory", Report.naive),
    "sequence3": ("Three datasets in three orders", Report.sequence3),
    "noise": ("More noise", Report.noise),
    "ten": ("Ten tasks", Report.ten),
    "plasticity": ("What was tried to give the new task more room", Report.plasticity),
    "estimates": ("Forgetting, estimated without data", Report.estimates),
}
