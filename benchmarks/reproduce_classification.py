"""`make reproduce-classification`: the half of the paper on classes, as docs/reproduction-classification.md.

The same protocol at the size that two cores can do. Every step that is done is kept: stopped, it goes on where it was.
`--only tasks,downstream` does some sections; those that are not done are not in the report.
"""

import argparse
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import paper
from benchmarks.class_sequences import HARD, SEQUENCE3, SOFT, ClassCourse, ClassLearnt, Sessions
from benchmarks.classification import WITH, WITHOUT, cost, methods, sessions_of, tasks_of
from benchmarks.lab import NOBODY, Lab, Made, Size, spread, write_report
from benchmarks.real import data_folder
from benchmarks.records import add_places, records_of, told_of
from engine.work import ModelInput

ROOT = Path(__file__).parents[1]
NAMES = {
    "local_distill": "flashcards, local_distill, by class",
    "naive": "naive (SFT)",
    "joint": "joint (cumulative)",
    "vae_replay": "vae_replay (GR)",
}
TASK_METHODS = ("joint", "naive", "ewc", "si", "lwf", "imm mean", "imm mode", "vae_replay", "eeil", "agem")
CARDS = ("flashcards", "local_distill")
SESSION_METHODS = ("naive", "joint", "ewc", "si", "imm mode", "eeil", "agem")
OTHERS = ("reproduction.md", "reproduction-continual.md")
Lines = list[str]


@dataclass
class Report:
    """The sections, each a few lines of Markdown."""

    course: ClassCourse
    of_sessions: ClassCourse
    of_downstream: "Downstream"
    architecture: str
    session_architecture: str
    session_autoencoder: str
    cards: int
    maker_epochs: int | None = None  # of what makes cards; None: half of the classifier's

    def chains(self, course: ClassCourse, sessions: Sessions, name: str) -> list[ClassLearnt]:
        method = methods(self.cards, course.size.images * max(1, len(sessions.light)))[name]
        return [course.learn(sessions, method, seed) for seed in course.size.seeds]

    def tasks(self) -> Lines:
        size, sessions = (
            self.course.size,
            tasks_of(self.architecture, self.architecture.replace("tasknet", "tasknet_ae"), self.maker_epochs),
        )
        names = (*TASK_METHODS, "coreset", *CARDS)
        found = {name: self.chains(self.course, sessions, name) for name in names}
        lines = [
            f"{' -> '.join(SEQUENCE3)}, {_told(size, sessions)}.",
            "The paper shows bars and prints no number: with task id all of its methods are alike, without it those",
            "that replay nothing fail, and flashcards stay.",
            "",
            *_head("strategy", "with task id", "without", *SEQUENCE3, "BWT", "MB", "x naive"),
        ]
        for name, chains in found.items():
            last = [spread([chain.row(3, WITHOUT)[place] for chain in chains]) for place in range(3)]
            figures = [spread([chain.average(each) for chain in chains]) for each in (WITH, WITHOUT)]
            rest = (spread([chain.bwt for chain in chains], "+"), f"{_mean(chains, 'memory'):.2f}")
            lines.append(_row(NAMES.get(name, name), *figures, *last, *rest, f"{cost(found, name):.2f}"))
        return [*lines, "", "The three columns of datasets are without task id, after the last task."]

    def soft(self) -> Lines:
        return self._sessions(SOFT, "cifar10", SESSION_METHODS, paper.SESSIONS_SOFT)

    def hard(self) -> Lines:
        return self._sessions(HARD, "cifar10", ("naive", "joint", "coreset 1 %", "coreset 10 %"), paper.SESSIONS_HARD)

    def hard100(self) -> Lines:
        names = ("naive", "joint", "coreset 1 %", "coreset 10 %")
        return self._sessions(HARD, "cifar100", names, paper.SESSIONS_HARD_100)

    def _sessions(
        self, light: tuple[float, ...], dataset: str, names: tuple[str, ...], theirs: dict[str, tuple[float, ...]]
    ) -> Lines:
        head = _head("strategy", *(f"{each:+g}" for each in light), "BWT", "the paper")
        if not (self.of_sessions.data / f"{dataset}.npz").exists():
            rows = [
                _row(NAMES.get(name, name), *["not run: no data"] * len(light), "-", _listed(theirs.get(name)))
                for name in (*names, *CARDS)
            ]
            return [f"{dataset} is not among the data here.", "", *head, *rows]
        names_of = (self.session_architecture, self.session_autoencoder)
        sessions = sessions_of(*names_of, light, dataset, self.maker_epochs)
        lines = [
            f"{dataset} in parts, brightness and saturation moved by these numbers;",
            f"{_told(self.of_sessions.size, sessions)}.",
            "Accuracy in % on the same test images after each session.",
            "",
            *head,
        ]
        for name in (*names, *CARDS):
            chains = self.chains(self.of_sessions, sessions, name)
            after = [f"{100 * sum(each) / len(each):.1f}" for each in zip(*(c.by_session for c in chains), strict=True)]
            bwt = spread([chain.bwt for chain in chains], "+")
            lines.append(_row(NAMES.get(name, name), *after, bwt, _listed(theirs.get(name))))
        return lines

    def downstream(self) -> Lines:
        lab = self.of_downstream
        lines = [
            f"{lab.classifier} (with batch norm, which the paper does not name) learnt from images, from what an",
            f"autoencoder ({lab.autoencoder}) makes of them, and from what one makes that was taught by cards alone;",
            f"tested on the test images as they are. {lab.size.images} images, {lab.size.epochs} epochs.",
            "",
            *_head("dataset", "images", "through the autoencoder", "through one taught by cards", "the paper"),
        ]
        for dataset, theirs in paper.DOWNSTREAM.items():
            found = [spread([lab.accuracy(dataset, way, seed) for seed in lab.size.seeds]) for way in lab.WAYS]
            lines.append(_row(dataset, *found, ", ".join(f"{each:.4f}" for each in theirs)))
        return lines


class Downstream(ClassCourse):
    """Classifiers on reconstructions: `train` jobs with and without `through`."""

    WAYS = ("images", "autoencoder", "cards")
    classifier = "vgg16_10_width_16"
    autoencoder = "blk_4_fil_32"

    def accuracy(self, dataset: str, way: str, seed: int) -> float:
        through = None if way == "images" else self._maker(dataset, seed)
        if way == "cards":
            cards = self.capture(through, "auto", seed)
            through = self.distill(cards, through, dataset, self.autoencoder, seed)

        def make(out: Path) -> dict[str, Any]:
            asked = {"kind": "train", "dataset": f"dataset_{NOBODY}", "architecture": self.classifier, "seed": seed}
            asked |= {} if through is None else {"through": f"model_{NOBODY}"}
            return self._run(self._learning(**asked), out, dataset=self._labelled(dataset), model=self._by(through))

        cost = 3 * self.size.images * self.size.epochs
        made = self._step(f"downstream/{dataset}/{self.classifier}/{way}/{seed}", cost, make)
        found: float = made["test_accuracy"]
        return found

    def _maker(self, dataset: str, seed: int) -> Made:
        return self.train(dataset, self.autoencoder, seed)

    def _by(self, through: Made | None) -> ModelInput | None:
        return None if through is None else self._model(through)

    def _tell(self, key: str, cost: float, seconds: float) -> None:
        Lab._tell(self, key, cost, seconds)


SECTIONS: dict[str, tuple[str, Callable[[Report], Lines]]] = {
    "tasks": ("Three datasets, a head each (Figure 6)", Report.tasks),
    "soft": ("Sessions of CIFAR-10, the softer setting (Table 4)", Report.soft),
    "hard": ("Sessions of CIFAR-10, the harder setting", Report.hard),
    "hard100": ("Sessions of CIFAR-100, the harder setting", Report.hard100),
    "downstream": ("Classifiers on reconstructions", Report.downstream),
}


def _told(size: Size, sessions: Sessions) -> str:
    optimizer = dict(sessions.asked).get("optimizer", "adam")
    return (
        f"{sessions.architecture} and {sessions.autoencoder}, {size.image}, {size.images} images a task, {size.epochs} "
        f"epochs in batches of {size.batch}, {optimizer} {size.learning_rate:g}"
    )


def _head(*columns: str) -> Lines:
    return [_row(*columns), _row(*["---"] * len(columns))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _mean(chains: list[ClassLearnt], figure: str) -> float:
    return sum(getattr(chain, figure) for chain in chains) / len(chains)


def _listed(values: tuple[float, ...] | None) -> str:
    return "-" if values is None else ", ".join(f"{value:.1f}" for value in values)


def write(report: Report, names: list[str], docs: Path, words: str) -> Path:
    courses = (report.course, report.of_sessions, report.of_downstream)
    sections = [(SECTIONS[name][0], SECTIONS[name][1](report)) for name in names]
    size, seconds = report.course.size, sum(made.seconds for course in courses for made in course.used.values())
    steps = dict.fromkeys(course.records.link(course.size.name, docs) for course in courses if course.used)
    asked = f' REPRODUCE="{words}"' if words else ""
    head = [
        "# The paper, reproduced: classes",
        "",
        f"Made by `make reproduce-classification{asked}` from real data, with the jobs of this tree; sections that are",
        f"missing were not asked for. Mean and deviation over {len(size.seeds)} seed(s). The paper has 50,000 images a",
        "task, 5,000 steps of 256 images a network and task, a whole ResNet18, and 5 runs; the numbers of its softer",
        "sessions are in a work that it cites, and those here are ours.",
        f"{report.cards} cards, draws or images kept, in all. {seconds / 60:.0f} minutes of work, each step on",
        f"{size.threads} of two cores. Figures of every step, and the commit that made it: {', '.join(steps)}.",
        *(f"The other part: [{name}]({name})." for name in OTHERS if (docs / name).exists()),
    ]
    return write_report(docs / "reproduction-classification.md", head, sections)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce_classification", description=__doc__)
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, as in tasks,downstream")
    parser.add_argument("--architecture", default="tasknet")
    parser.add_argument("--session-architecture", default="resnet18_width_16")
    parser.add_argument("--session-autoencoder", default="blk_4_fil_32")
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--session-images", type=int, default=1500)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--autoencoder-epochs", type=int, help="of what makes cards; default: half as many")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--cards", type=int, default=1000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, default=Size.threads)
    add_places(parser)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the report goes")
    asked = parser.parse_args(words)
    seeds = tuple(map(int, asked.seeds.split(",")))

    def size(images: int, rate: float) -> Size:
        numbers = (images, asked.tests, asked.epochs, seeds, asked.side, asked.threads)
        return Size(*numbers, patience=asked.epochs, batch=asked.batch, learning_rate=rate)

    data = data_folder()
    report = Report(
        ClassCourse(asked.folder, data, size(asked.images, 1e-3), records=records_of(asked)),
        ClassCourse(asked.folder, data, size(asked.session_images, 1e-2), records=records_of(asked)),
        Downstream(asked.folder, data, size(asked.images, 1e-3), records=records_of(asked)),
        asked.architecture,
        asked.session_architecture,
        asked.session_autoencoder,
        asked.cards,
        asked.autoencoder_epochs,
    )
    names = asked.only.split(",")
    courses = (report.course, report.of_sessions, report.of_downstream)
    for planning in (True, False):
        for course in courses:
            course.planning = planning
        for name in names:
            SECTIONS[name][1](report)
    told = shlex.join(told_of(words))
    report.course.console.print(f"wrote {write(report, names, asked.docs, told)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
