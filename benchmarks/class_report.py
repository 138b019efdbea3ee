"""What docs/reproduction-classification.md shows: sections, each a few lines of Markdown.

A figure is the mean over the seeds whose learners came to their end; where those are fewer than were asked for the cell
says how many, and where there are none it says that it was not run.
"""

from collections.abc import Callable, Sized
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import cells, paper
from benchmarks.class_sequences import HARD, SEQUENCE3, SOFT, ClassCourse, ClassLearnt, Sessions
from benchmarks.classification import (
    WITH,
    WITHOUT,
    Found,
    Rows,
    methods,
    session_targets,
    sessions_of,
    task_gates,
    task_targets,
    tasks_of,
)
from benchmarks.downstream import WAYS, Downstream
from benchmarks.lab import NOBODY, Made, Size
from benchmarks.reports import NOT_RUN, Lines, header, row
from engine.compare_class_plots import ACCURACIES, save_accuracies
from engine.work import UnitInput
from flashcards.contract.learners import Matrix

NAMES = {
    "paper": "flashcards, as in the paper",
    "by_class": "the same, drawn by class",
    "local_distill": "flashcards, local_distill",
    "naive": "naive (SFT)",
    "joint": "joint (cumulative)",
    "vae_replay": "vae_replay (GR)",
}
THEIRS = {"paper": "flashcards"}  # what the paper calls it
CARDS = ("flashcards", "paper", "local_distill")
TASKS = ("joint", "naive", "ewc", "si", "lwf", "imm mean", "imm mode", "vae_replay", "eeil", "agem", "coreset", *CARDS)
SESSION_CARDS = ("flashcards", "paper")
SOFT_SESSIONS = ("naive", "joint", "ewc", "si", "imm mode", "eeil", "agem", *SESSION_CARDS)
HARD_SESSIONS = ("naive", "joint", "ewc", "si", "coreset 1 %", "coreset 10 %", *SESSION_CARDS)
Runs = dict[int, ClassLearnt]  # by seed


@dataclass
class Report:
    course: ClassCourse
    of_sessions: ClassCourse
    of_downstream: Downstream
    docs: Path
    architecture: str
    session_architecture: str
    session_autoencoder: str
    cards: int
    maker_epochs: int | None = None  # of what makes cards; None: half of the classifier's

    @property
    def courses(self) -> tuple[ClassCourse, ...]:
        return self.course, self.of_sessions, self.of_downstream

    def runs(self, course: ClassCourse, sessions: Sessions, names: tuple[str, ...]) -> dict[str, Runs]:
        """Those that came to their end."""
        of = "sessions" if sessions.light else "tasks"
        known = methods(self.cards, course.size.images * max(1, len(sessions.light)), of)
        found = {
            name: {seed: course.learn(sessions, known[name], seed) for seed in course.size.seeds} for name in names
        }
        return {name: {seed: chain for seed, chain in runs.items() if chain.is_over} for name, runs in found.items()}

    def tasks(self) -> Lines:
        autoencoder = self.architecture.replace("tasknet", "tasknet_ae")
        sessions = tasks_of(self.architecture, autoencoder, self.maker_epochs)
        found = self.runs(self.course, sessions, TASKS)
        lines = [
            f"{' -> '.join(SEQUENCE3)}, {told_of(self.course.size, sessions)}.",
            "The paper shows bars and prints no number: with task id all of its methods are alike, without it those",
            "that replay nothing fail, and flashcards stay.",
            "",
            *header("strategy", "with task id", "without", *SEQUENCE3, "BWT", "MB"),
        ]
        for name, runs in found.items():
            if any(chain.diverged for chain in runs.values()):
                lines.append(row(NAMES.get(name, name), "diverged", *["-"] * 6))
                continue
            chains = list(runs.values())
            figures = [cells.mean_of([chain.average(each) for chain in chains]) for each in (WITH, WITHOUT)]
            last = [cells.mean_of([chain.row(3, WITHOUT)[place] for chain in chains]) for place in range(3)]
            rest = (cells.mean_of([chain.bwt for chain in chains], "+"), cells.megabytes(runs, "memory"))
            figures[1] += self._few(runs)
            lines.append(row(NAMES.get(name, name), *figures, *last, *rest))
        return [
            *lines,
            "",
            "The three columns of datasets are without task id, after the last task. What each strategy costs is",
            'measured in one run: `make bench-classification BENCH="--bar cost"`.',
            "",
            *_task_bars(found),
            "",
            self._picture(self.course, found, sessions, "tasks"),
        ]

    def soft(self) -> Lines:
        return self._sessions("soft", SOFT, "cifar10", SOFT_SESSIONS, paper.SESSIONS_SOFT)

    def hard(self) -> Lines:
        return self._sessions("hard", HARD, "cifar10", HARD_SESSIONS, paper.SESSIONS_HARD)

    def hard100(self) -> Lines:
        return self._sessions("hard100", HARD, "cifar100", HARD_SESSIONS, paper.SESSIONS_HARD_100)

    def _sessions(
        self,
        section: str,
        light: tuple[float, ...],
        dataset: str,
        names: tuple[str, ...],
        theirs: dict[str, tuple[float, ...]],
    ) -> Lines:
        course, has_data = self.of_sessions, (self.of_sessions.data / f"{dataset}.npz").exists()
        sessions = sessions_of(self.session_architecture, self.session_autoencoder, light, dataset, self.maker_epochs)
        found = self.runs(course, sessions, names) if has_data or course.kept_only else {}
        lines = [
            f"{dataset} in parts, brightness and saturation moved by these numbers;",
            f"{told_of(course.size, sessions)}.",
            "Accuracy in % on the same test images after each session.",
            "",
            *header("strategy", *(f"{each:+g}" for each in light), "BWT", "the paper"),
        ]
        if not any(found.values()):
            missing = NOT_RUN if has_data or dataset == "cifar10" else f"{NOT_RUN}: no data"
            return [
                *lines,
                *(row(NAMES.get(n, n), *[missing] * len(light), "-", _listed(_their(theirs, n))) for n in names),
            ]
        for name, runs in found.items():
            if any(chain.diverged for chain in runs.values()):
                beside = (*["-"] * len(light), _listed(_their(theirs, name)))
                lines.append(row(NAMES.get(name, name), "diverged", *beside))
                continue
            by_session = zip(*(chain.by_session for chain in runs.values()), strict=True)
            after = [f"{100 * np.mean(each):.1f}" for each in by_session] or [NOT_RUN] * len(light)
            after[-1] += self._few(runs)
            bwt = cells.mean_of([chain.bwt for chain in runs.values()], "+")
            lines.append(row(NAMES.get(name, name), *after, bwt, _listed(_their(theirs, name))))
        return [*lines, "", *_session_bars(found), "", self._picture(course, found, sessions, section)]

    def downstream(self) -> Lines:
        lab = self.of_downstream
        lines = [
            f"{lab.classifier} (with batch norm, which the paper does not name) learnt from images, from what an",
            f"autoencoder ({lab.autoencoder}) makes of them, and from what one makes that was taught by cards alone;",
            f"tested on the test images as they are. {lab.size.images} images, {lab.size.epochs} epochs; the",
            "autoencoders are those of [capture](reproduction.md).",
            "",
            *header("dataset", "images", "through the autoencoder", "through one taught by cards", "the paper"),
        ]
        for dataset, theirs in paper.DOWNSTREAM.items():
            found = [self._accuracy([lab.taught(dataset, way, seed) for seed in lab.size.seeds]) for way in WAYS]
            lines.append(row(dataset, *found, ", ".join(f"{each:.4f}" for each in theirs)))
        return lines

    def _accuracy(self, taught: list[Made]) -> str:
        """A network that collapsed was run all the same."""
        if any("collapsed" in made.result for made in taught):
            return "collapsed"
        known = [made["test_accuracy"] for made in taught if "test_accuracy" in made.result]
        return cells.mean_of(known) + self._few(known)

    def _few(self, runs: Sized) -> str:
        asked = len(self.course.size.seeds)
        return f" ({len(runs)} of {asked} seeds)" if 0 < len(runs) < asked else ""

    def _picture(self, course: ClassCourse, found: dict[str, Runs], sessions: Sessions, section: str) -> str:
        """Drawn from the figures, so that it can always be; by size, as the figures are."""
        shown = {name: runs for name, runs in found.items() if runs and all(chain.is_whole for chain in runs.values())}
        if not shown or course.planning:
            return ""
        folder = self.docs / "reproduction" / "classification" / course.size.name
        folder.mkdir(parents=True, exist_ok=True)
        units = [[_unit(chain, seed) for seed, chain in runs.items()] for runs in shown.values()]
        labels = [NAMES.get(name, name) for name in shown]
        save_accuracies(folder, labels, sessions.tasks, units, sessions.scenario)
        picture = (folder / ACCURACIES.name).replace(folder / f"{section}.png")
        return cells.picture(picture, self.docs)


def told_of(size: Size, sessions: Sessions) -> str:
    optimizer = dict(sessions.asked).get("optimizer", "adam")
    return (
        f"{sessions.architecture} and {sessions.autoencoder}, {size.image}, {size.images} images a task, {size.epochs} "
        f"epochs in batches of {size.batch}, {optimizer} {size.learning_rate:g}"
    )


def _unit(chain: ClassLearnt, seed: int) -> UnitInput:
    """As a comparison has it."""
    multihead, numbers = chain.sessions.scenario == "task_incremental", range(1, chain.length + 1)
    matrix = Matrix.model_construct(
        learner=f"learner_{NOBODY}",
        matrix=[chain.row(number, WITH) for number in numbers],
        matrix_without_task_id=[chain.row(number, WITHOUT) for number in numbers] if multihead else None,
    )
    return UnitInput(strategy=0, seed=seed, matrix=matrix)


def _shared(found: dict[str, Runs], *names: str) -> Found:
    """Of the seeds that all of these have; none: nothing can be said."""
    seeds = set.intersection(*(set(found.get(name, {})) for name in names))
    whole = [seed for seed in sorted(seeds) if all(found[name][seed].is_whole for name in names)]
    return {name: [found[name][seed] for seed in whole] for name in names} if whole else {}


def _task_bars(found: dict[str, Runs]) -> Lines:
    """Each other strategy on the seeds that both have, then with task id beside all that have the seeds of all."""
    rows: list[tuple[int, Rows]] = []
    for name in found:
        if pair := _shared(found, "flashcards", name):
            ahead = [] if name == "flashcards" else [*task_gates(pair), *task_targets(pair)[:-1]]
            rows.append((len(pair[name]), ahead))
    everywhere = [name for name in found if len(found[name]) == len(found["flashcards"])]
    if whole := _shared(found, "flashcards", *everywhere):
        rows.append((len(whole["flashcards"]), task_targets(whole)[-1:]))
    return _bars(rows)


def _session_bars(found: dict[str, Runs]) -> Lines:
    rows: list[tuple[int, Rows]] = []
    for name in found:
        if pair := _shared(found, "flashcards", name):
            rows.append((len(pair[name]), session_targets(pair)))
    return _bars(rows)


def _bars(rows: list[tuple[int, Rows]]) -> Lines:
    return [
        f"- {seeds} seed(s): {words}: {'holds' if holds else 'missed'}" for seeds, told in rows for words, holds in told
    ]


def _their(theirs: dict[str, tuple[float, ...]], name: str) -> tuple[float, ...] | None:
    return None if name == "flashcards" else theirs.get(THEIRS.get(name, name))


def _listed(values: tuple[float, ...] | None) -> str:
    return "-" if values is None else ", ".join(f"{value:.1f}" for value in values)


SECTIONS: dict[str, tuple[str, Callable[[Report], Lines]]] = {
    "tasks": ("Three datasets, a head each (Figure 6)", Report.tasks),
    "soft": ("Sessions of CIFAR-10, the softer setting (Table 4)", Report.soft),
    "hard": ("Sessions of CIFAR-10, the harder setting", Report.hard),
    "hard100": ("Sessions of CIFAR-100, the harder setting", Report.hard100),
    "downstream": ("Classifiers on reconstructions", Report.downstream),
}
