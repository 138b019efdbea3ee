"""Learners of classes as chains of kept steps, as `benchmarks.sequences` has those of images."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import real
from benchmarks.class_trials import in_place
from benchmarks.lab import NOBODY, RANGE, Lab, Made, Quiet
from benchmarks.sequences import NAN, Chain, short
from engine import capsule
from engine.class_desk import AUTOENCODER
from engine.errors import Diverged
from engine.files import digest_of
from engine.learnt import IMAGES, STATE
from engine.run import run
from engine.strategies.base import Strategy
from engine.weights import WEIGHTS
from engine.work import DatasetInput, LearnerInput, ModelInput, TaskInput, Work
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.results import TaskMeasure
from flashcards.contract.specs import job_spec

SEQUENCE3 = ("cifar10", "mnist", "fashion_mnist")
HARD = (0.0, -0.1, 0.1, -0.2, 0.2)
#: The values of the softer setting are in a work that the paper cites, not in the paper: these are ours.
SOFT = (0.0, -0.02, 0.02, -0.05, 0.05)
SAME_FIRST_TASK = ("lwf",)  # with nothing to keep yet it is naive


@dataclass(frozen=True)
class ClassMethod:
    """A strategy under the name that a table shows."""

    name: str
    config: dict[str, Any]
    first: dict[str, Any] | None = None  # at the first task, where the config says what matters from the second on
    trial: type[Strategy] | None = None  # in place of `flashcards`, from the second task on

    def at(self, number: int) -> dict[str, Any]:
        if number == 1 and self.config["kind"] in SAME_FIRST_TASK:
            return {"kind": "naive"}
        return self.first if number == 1 and self.first is not None else self.config

    def trial_at(self, number: int) -> type[Strategy] | None:
        return None if number == 1 and not getattr(self.trial, "from_first", False) else self.trial

    def key(self, number: int) -> str:
        config, trial = self.at(number), self.trial_at(number)
        return f"{config['kind'] if trial is None else trial.__name__}-{short(config)}"

    def cost(self, number: int) -> float:
        """Images through the classifier for each new one, about, so that the time left can be told."""
        kind = self.config["kind"]
        if kind == "flashcards":
            return 2 if number == 1 else 4
        if number == 1 or kind in ("naive", "ewc", "si", "imm"):
            return 1
        return {"joint": number, "vae_replay": 4}.get(kind, 2)


@dataclass(frozen=True)
class Sessions:
    """What the learner goes through: datasets with a head each, or parts of one, each in a light of its own."""

    scenario: str
    tasks: tuple[str, ...]  # `cifar10`, or `cifar10@2` for the second part
    architecture: str
    autoencoder: str
    light: tuple[float, ...] = ()
    asked: tuple[tuple[str, Any], ...] = ()  # of every task: optimizer and the like

    @property
    def key(self) -> str:
        light = "" if not self.light else "-" + "".join(f"{each:+g}" for each in self.light)
        return f"{self.scenario}{light}-{short(dict(self.asked))}/{self.architecture}+{self.autoencoder}"


@dataclass(frozen=True)
class ClassLearnt(Chain):
    """A chain: the steps it took, one a task. While an experiment is only planned every figure is not a number."""

    sessions: Sessions
    steps: list[Made] = field(default_factory=list)

    @property
    def length(self) -> int:
        return len(self.sessions.tasks)

    def row(self, number: int, name: str = "accuracy") -> list[float]:
        """After task `number`, of every task so far."""
        if not self.is_whole:
            return [NAN] * number
        return [NAN if each[name] is None else each[name] for each in self.steps[number - 1].result["measures"]]

    def average(self, name: str = "accuracy") -> float:
        return statistics.mean(self.row(len(self.sessions.tasks), name))

    @property
    def bwt(self) -> float:
        tasks = len(self.sessions.tasks)
        return statistics.mean(self.row(tasks)[i] - self.row(i + 1)[i] for i in range(tasks - 1))

    @property
    def by_session(self) -> list[float]:
        """Accuracy on the test images, which stay the same, after each session."""
        return [self.row(number)[-1] for number in range(1, len(self.sessions.tasks) + 1)]

    @property
    def training_seconds(self) -> float:
        """Of all trainings, as the jobs say: the steps alone."""
        return sum(step.result["seconds"] for step in self.steps) if self.is_whole else NAN

    @property
    def job_seconds(self) -> float:
        """Of the whole jobs: with cards, importances and whatever a strategy does before and after its steps."""
        return sum(step.seconds for step in self.steps) if self.is_whole else NAN

    @property
    def memory(self) -> float:
        """MB beside the classifier, at the end."""
        if not self.is_whole:
            return NAN
        kept = self.steps[-1].result["memory"]
        return sum(size for what, size in kept.items() if what != "network") / 1e6


class ClassCourse(Lab):
    """A lab for learners of classes: its steps are tasks."""

    def learn(self, sessions: Sessions, method: ClassMethod, seed: int) -> ClassLearnt:
        size = self.size
        key = f"classes/{sessions.key}/{size.tests}-tests/seed-{seed}"
        chain = ClassLearnt(sessions)
        for number, task in enumerate(sessions.tasks, start=1):
            key += f"/{task}+{method.key(number)}"
            done = ClassLearnt(sessions, list(chain.steps))

            def make(out: Path, done: ClassLearnt = done, number: int = number) -> dict[str, Any]:
                with in_place(method.trial_at(number)):
                    return self._learn_task(out, done, method.at(number), seed)

            made = self._step(key, method.cost(number) * size.images * size.epochs, make)
            chain.steps.append(made)
            if "diverged" in made.result or (self.kept_only and not made.result):
                break
        return chain

    def _learn_task(self, out: Path, done: ClassLearnt, config: dict[str, Any], seed: int) -> dict[str, Any]:
        sessions, number, size = done.sessions, len(done.steps) + 1, self.size
        spec = {"kind": "learn", "learner": f"learner_{NOBODY}", "dataset": f"dataset_{NOBODY}", "strategy": config}
        # The same minibatches of new images for every strategy: nobody stops early.
        spec |= {"name": sessions.tasks[number - 1], "epochs": size.epochs, "patience": size.epochs, "seed": seed}
        spec |= {"batch_size": size.batch, "learning_rate": size.learning_rate, **dict(sessions.asked)}
        if sessions.light:
            light = sessions.light[number - 1]
            spec["jitter"] = {"brightness": light, "saturation": light}
        base = done.steps[-1] if done.steps else None
        work = Work(
            spec=job_spec.validate_python(spec),
            out=out,
            model=base and self._network(base.folder / WEIGHTS.name, base.result["architecture"]),
            autoencoder=base and self._network(base.folder / AUTOENCODER.name, sessions.autoencoder),
            dataset=self._labelled(sessions.tasks[number - 1]),
            learner=self._learner(done),
            resume_seconds=1e9,
            refuse_collapse=False,
            threads=size.threads,
        )
        try:
            return run(work, Quiet(), lambda: False).result.model_dump(mode="json")
        except Diverged as diverged:
            return {"diverged": diverged.detail}

    def _learner(self, done: ClassLearnt) -> LearnerInput:
        sessions, folder = done.sessions, done.steps[-1].folder if done.steps else Path()
        return LearnerInput(
            scenario=sessions.scenario,
            noise=0.1,
            clip=True,
            architecture=architecture_spec.validate_python(sessions.architecture),
            autoencoder=architecture_spec.validate_python(sessions.autoencoder),
            range=RANGE,
            tasks=[
                TaskInput(
                    name=sessions.tasks[number - 1],
                    capsule=_kept(folder, capsule.of_task(number).name),
                    test=self._labelled(sessions.tasks[number - 1]),
                    classes=step.result["classes"],
                )
                for number, step in enumerate(done.steps, start=1)
            ],
            measures=[[TaskMeasure(**each) for each in step.result["measures"]] for step in done.steps],
            state=_kept(folder, STATE.name) if done.steps else None,
            images=_kept(folder, IMAGES.name) if done.steps else None,
        )

    def _network(self, path: Path, architecture: Any) -> ModelInput | None:
        if not path.exists():
            return None
        return ModelInput(
            path=path,
            digest=digest_of(path),
            architecture=architecture_spec.validate_python(architecture),
            input=self.size.image,
            range=RANGE,
            made_here=True,
        )

    def _labelled(self, task: str) -> DatasetInput:
        size = self.size
        path = self.folder / "data" / f"{task}-{size.side}-{size.images}-{size.tests}-labelled.npz"
        if not path.exists():
            name, _, part = task.partition("@")
            real.prepare_labelled(self.data / f"{name}.npz", path, size.images, size.tests, size.side, int(part or 1))
        return DatasetInput(path=path, digest=task)

    def _tell(self, key: str, cost: float, seconds: float) -> None:
        """The whole life would fill the screen: whose it is, and what was learnt last."""
        _, scenario, _, _, seed, *tasks = key.split("/")
        super()._tell(f"{scenario} {seed} task {len(tasks)}: {tasks[-1]}", cost, seconds)


def parts(dataset: str, count: int) -> tuple[str, ...]:
    return tuple(f"{dataset}@{number}" for number in range(1, count + 1))


def mean_of(chains: Sequence[ClassLearnt], figure: str) -> float:
    return statistics.mean(each.average(figure) for each in chains)


def _kept(folder: Path, name: str) -> Path | None:
    return folder / name if (folder / name).exists() else None
