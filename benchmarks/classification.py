"""`make bench-classification`: learners of classes by every strategy, beside what keeps real images.

The same minibatches of new images for all: as many epochs, no early stop. Every task that is done is kept, so the
command can be stopped and goes on where it was.

`--bar tasks`: CIFAR-10, MNIST and Fashion-MNIST with a head each, with and without task id. `--bar sessions`: five
parts of CIFAR-10, each in a light of its own. `--bar cost`: every strategy on fewer images, one after the other in one
run, of which nothing is kept: do nothing else beside it. `--bar speed`: the loop against one that is written by hand.
`--bar losses`: ways to draw cards and to learn from them, see class_trials.py. `--bar weights`: how strongly baselines
that have a weight should hold; ask it of seeds that no bar has. Both are of the tasks, or of sessions with
`--of sessions`.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks import class_speed, class_trials
from benchmarks.class_sequences import (
    HARD,
    SEQUENCE3,
    SOFT,
    ClassCourse,
    ClassLearnt,
    ClassMethod,
    Sessions,
    mean_of,
    parts,
)
from benchmarks.continual import tell
from benchmarks.lab import Size, spread
from benchmarks.real import data_folder
from benchmarks.records import add_places, records_of

WITH, WITHOUT = "accuracy", "accuracy_without_task_id"
GATES = ("naive", "ewc", "si", "lwf")
BARS = ("tasks", "sessions", "cost", "speed", "weights", "losses")
DEAREST = 4.0  # times the training of naive
SESSION_IMAGES = 750  # with twice as many the bar takes longer than an hour of two cores
#: What `flashcards` is there by default, under the name of what it is.
SAME = {"tasks": "transplant", "sessions": "by_class"}
Found = dict[str, list[ClassLearnt]]
Rows = list[tuple[str, bool]]
Bars = Callable[[Found], Rows]


#: Of those of `weighed`, the best on seed 7, which no bar has: of the tasks without task id; of sessions, of 500 images
#: each, after the last one, and where two are alike there over all.
WEIGHTS = {"tasks": {"ewc": 10_000.0, "si": 10.0}, "sessions": {"ewc": 10.0, "si": 10.0}}
TRIED = {
    "tasks": {"ewc": (1e2, 1e3, 1e4, 1e5), "si": (1.0, 10.0, 100.0, 1000.0), "lwf": (0.3, 1.0, 3.0)},
    # Gradients of SGD are not scaled: springs as stiff as those that serve Adam make it diverge.
    "sessions": {"ewc": (1.0, 10.0, 100.0, 1000.0), "si": (0.1, 1.0, 10.0)},
}


def methods(cards: int, images: int, of: str = "tasks") -> dict[str, ClassMethod]:
    share = max(1, images // 10)
    every = [
        *losses(cards).values(),
        ClassMethod("naive", {"kind": "naive"}),
        *(ClassMethod(kind, {"kind": kind, "weight": weight}) for kind, weight in WEIGHTS[of].items()),
        ClassMethod("lwf", {"kind": "lwf"}),
        ClassMethod("imm mean", {"kind": "imm", "merge": "mean"}),
        ClassMethod("imm mode", {"kind": "imm", "merge": "mode"}),
        ClassMethod("vae_replay", {"kind": "vae_replay", "count": cards}),
        ClassMethod("coreset", {"kind": "coreset", "size": cards}),
        ClassMethod("coreset 10 %", {"kind": "coreset", "size": share}),
        ClassMethod("coreset 1 %", {"kind": "coreset", "size": max(1, share // 10)}),
        ClassMethod("eeil", {"kind": "eeil", "size": cards}),
        ClassMethod("agem", {"kind": "agem", "size": cards}),
        ClassMethod("joint", {"kind": "joint"}),
    ]
    return {method.name: method for method in every}


def losses(cards: int) -> dict[str, ClassMethod]:
    """Ways to draw cards and to learn from them: as by default, as in the paper, and what was tried."""
    first: dict[str, Any] = {"kind": "flashcards", "count": cards}  # nothing is replayed in it: the same for all
    paper = {**first, "loss": "soft_labels", "by_class": False}
    by_class = {**paper, "by_class": True}
    tried = {
        "veiled": class_trials.Veiled,
        "held": class_trials.Held,
        "evenly": class_trials.Evenly,
        "sharpened": class_trials.Sharpened,
        "remembered": class_trials.Remembered,
    }
    every = [
        ClassMethod("flashcards", {**first, "loss": "auto", "by_class": True}, first=first),
        ClassMethod("paper", paper, first=first),
        ClassMethod("by_class", by_class, first=first),
        ClassMethod("local_distill", {**by_class, "loss": "local_distill"}, first=first),
        ClassMethod("transplant", {**by_class, "loss": "transplant"}, first=first),
        *(ClassMethod(name, by_class, first=first, trial=trial) for name, trial in tried.items()),
    ]
    return {method.name: method for method in every}


def weighed(of: str = "tasks") -> dict[str, ClassMethod]:
    """Baselines by weight."""
    every = [
        ClassMethod(f"{kind}-{weight:g}", {"kind": kind, "weight": weight}, first={"kind": kind})
        for kind, weights in TRIED[of].items()
        for weight in weights
    ]
    return {method.name: method for method in every}


def tasks_of(architecture: str, autoencoder: str, maker_epochs: int | None = None) -> Sessions:
    return Sessions("task_incremental", SEQUENCE3, architecture, autoencoder, asked=_asked(maker_epochs))


def sessions_of(
    architecture: str,
    autoencoder: str,
    light: tuple[float, ...],
    dataset: str = "cifar10",
    maker_epochs: int | None = None,
) -> Sessions:
    asked = (("optimizer", "sgd"), *_asked(maker_epochs))
    return Sessions("new_instance", parts(dataset, len(light)), architecture, autoencoder, light, asked)


def _asked(maker_epochs: int | None) -> tuple[tuple[str, int], ...]:
    """None: half as many as the classifier's."""
    return () if maker_epochs is None else (("autoencoder_epochs", maker_epochs),)


@dataclass(frozen=True)
class Asked:
    sessions: Sessions
    methods: Sequence[ClassMethod]

    def found(self, course: ClassCourse) -> Found:
        return {
            method.name: [course.learn(self.sessions, method, seed) for seed in course.size.seeds]
            for method in self.methods
        }


def cost(found: Found, name: str, figure: str = "training_seconds") -> float:
    """Against naive in the same run."""
    seconds, naive = (statistics.mean(getattr(c, figure) for c in found[each]) for each in (name, "naive"))
    return seconds / naive


def job_cost(found: Found, name: str) -> float:
    """With what is beside the trainings: cards, importances, exemplars, and what all alike measure and draw."""
    return cost(found, name, "job_seconds")


def table(found: Found) -> Table:
    multihead = next(iter(found.values()))[0].sessions.scenario == "task_incremental"
    columns = ("with id", "without id") if multihead else ("last session", "by session")
    shown = Table("strategy", *columns, "BWT", "MB", "x naive", "jobs", box=SIMPLE, pad_edge=False)
    for name, chains in found.items():
        if multihead:
            figures = [spread([chain.average(each) for chain in chains]) for each in (WITH, WITHOUT)]
        else:
            sessions = zip(*(chain.by_session for chain in chains), strict=True)
            figures = [
                spread([chain.by_session[-1] for chain in chains]),
                " ".join(f"{100 * statistics.mean(each):.1f}" for each in sessions),
            ]
        memory = f"{statistics.mean(chain.memory for chain in chains):.2f}"
        times = [f"{each(found, name):.2f}" if "naive" in found else "-" for each in (cost, job_cost)]
        shown.add_row(name, *figures, spread([chain.bwt for chain in chains], "+"), memory, *times)
    return shown


def cheap(found: Found) -> Rows:
    if "naive" not in found:
        return []
    rows = []
    for name in found:
        trainings, jobs = cost(found, name), job_cost(found, name)
        words = f"training of {name} costs {trainings:.2f} of naive's, its jobs {jobs:.2f}"
        rows.append((words, max(trainings, jobs) <= DEAREST))
    return rows


def nothing(_: Found) -> Rows:
    return []


def task_gates(found: Found) -> Rows:
    own = mean_of(found["flashcards"], WITHOUT) if "flashcards" in found else float("nan")
    return [
        (
            f"without task id flashcards {100 * own:.1f} above {name} {100 * mean_of(found[name], WITHOUT):.1f}",
            own > mean_of(found[name], WITHOUT),
        )
        for name in GATES
        if name in found
    ]


def task_targets(found: Found) -> Rows:
    if "flashcards" not in found:
        return []
    own, rows = mean_of(found["flashcards"], WITHOUT), []
    for name in (each for each in GATES if each in found):
        ahead = 100 * (own - mean_of(found[name], WITHOUT))
        rows.append((f"without task id {ahead:+.1f} points to {name}, at least +10", ahead >= 10))
    for name, least in (("vae_replay", 0.0), ("coreset", -5.0)):
        if name in found:
            ahead = 100 * (own - mean_of(found[name], WITHOUT))
            rows.append((f"without task id {ahead:+.1f} points to {name}, at least {least:+g}", ahead >= least))
    best = max(mean_of(chains, WITH) for chains in found.values())
    behind = 100 * (mean_of(found["flashcards"], WITH) - best)
    return [*rows, (f"with task id {behind:+.1f} points to the best, at least -2", behind >= -2)]


def session_targets(found: Found) -> Rows:
    if "flashcards" not in found:
        return []
    last = {name: statistics.mean(chain.by_session[-1] for chain in chains) for name, chains in found.items()}
    rows = []
    for name in ("naive", "ewc", "si", "coreset 10 %"):
        if name in found:
            ahead = 100 * (last["flashcards"] - last[name])
            rows.append((f"last session {ahead:+.1f} points to {name}, at least 0", ahead >= 0))
    return rows


def compare(course: ClassCourse, asked: Asked, gates: Bars, targets: Bars) -> bool:
    """True: every gate holds."""
    course.walk(lambda _: asked.found(course) and None)
    found, size, console = asked.found(course), course.size, course.console
    console.print(table(found))
    sessions = asked.sessions
    light = f" in the light of {sessions.light}" if sessions.light else ""
    console.print(
        f"{sessions.scenario}: {' -> '.join(sessions.tasks)}{light}; {sessions.architecture} and "
        f"{sessions.autoencoder}, {size.image}, {size.images} images a task, {size.epochs} epochs in batches of "
        f"{size.batch}, learning rate {size.learning_rate:g}, seeds {size.seeds}"
    )
    console.print("MB: kept beside the classifier, at the end. x naive: seconds of all trainings; jobs: of whole jobs")
    console.print("Steps that were kept took what they took, beside whatever else ran: --bar cost measures it")
    held = tell(console, "gate", gates(found))
    tell(console, "target", targets(found))
    return held


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classification", description=__doc__)
    parser.add_argument("--bar", choices=BARS, default="tasks")
    parser.add_argument("--of", choices=("tasks", "sessions"), default="tasks", help="weights and losses")
    parser.add_argument("--setting", choices=("hard", "soft"), default="hard", help="of sessions")
    parser.add_argument("--strategies", help="default: those that the bar speaks of")
    parser.add_argument("--architecture")
    parser.add_argument("--autoencoder")
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--images", type=int, help="a task; default 3000, of sessions 750, for cost 300")
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--autoencoder-epochs", type=int, help="of what makes cards; default: half as many")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, help="default 0.001, of sessions 0.01")
    parser.add_argument("--cards", type=int, help="or draws, or images kept, in all; default 1000, for cost 100")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, default=Size.threads)
    add_places(parser)
    given = parser.parse_args(words)
    console = Console()
    if given.bar == "speed":
        return class_speed.tell(console, given.threads)
    if given.bar == "cost":
        with tempfile.TemporaryDirectory() as folder:
            given.folder = given.records = Path(folder)
            return _compared(given, console)
    return _compared(given, console)


def _compared(given: argparse.Namespace, console: Console) -> int:
    of = given.of if given.bar in ("weights", "losses") else "sessions" if given.bar == "sessions" else "tasks"
    is_tasks, is_cost, epochs_of_maker = of == "tasks", given.bar == "cost", given.autoencoder_epochs
    images = given.images or (300 if is_cost else 3000 if is_tasks else SESSION_IMAGES)
    rate = given.learning_rate or (1e-3 if is_tasks else 1e-2)
    epochs, cards = given.epochs, given.cards or (100 if is_cost else 1000)
    seeds = (0,) if is_cost else tuple(map(int, given.seeds.split(",")))
    size = Size(images, given.tests, epochs, seeds, given.side, given.threads, epochs, given.batch, rate)
    course = ClassCourse(given.folder, data_folder(), size, console, records=records_of(given))
    known = methods(cards, images * len(HARD) if not is_tasks else images, of)
    if is_tasks:
        sessions = tasks_of(given.architecture or "tasknet", given.autoencoder or "tasknet_ae", epochs_of_maker)
        names = ["flashcards", "naive", "ewc", "si", "lwf", "vae_replay", "coreset", "joint"]
    else:
        light = HARD if given.setting == "hard" else SOFT
        names_of = (given.architecture or "resnet18_width_16", given.autoencoder or "blk_4_fil_32")
        sessions = sessions_of(*names_of, light, maker_epochs=epochs_of_maker)
        names = ["flashcards", "naive", "ewc", "si", "coreset 10 %"]
    bars: tuple[Bars, Bars] = (task_gates, task_targets) if is_tasks else (nothing, session_targets)
    if given.bar == "losses":
        names = [*(name for name in losses(cards) if name != SAME[of]), "naive", "coreset"]
    if is_cost:
        tried = [SAME[of], *(name for name, method in known.items() if method.trial is not None)]
        names, bars = [name for name in known if name not in tried], (cheap, nothing)
    if given.bar == "weights":
        known |= weighed(of)
        names, bars = ["naive", *weighed(of)], (nothing, nothing)
    asked = Asked(sessions, [known[name] for name in (given.strategies or ",".join(names)).split(",")])
    return 0 if compare(course, asked, *bars) else 1


if __name__ == "__main__":
    raise SystemExit(main())
