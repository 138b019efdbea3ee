"""Learners as chains of kept steps: one learn job a task, each in a folder within that of the task before it.

A folder is named by what was learnt and how, so its whole path tells the learner's life, and a chain that shares its
beginning with another one shares the steps too. A network that collapsed goes on: what becomes of it is a finding.
"""

import hashlib
import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.lab import NOBODY, RANGE, Lab, Made, Quiet
from benchmarks.trials import in_place
from engine import capsule
from engine.errors import Diverged
from engine.learnt import IMAGES, STATE
from engine.run import run
from engine.strategies.base import Strategy
from engine.work import LearnerInput, TaskInput, Work
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.results import TaskMeasure
from flashcards.contract.specs import job_spec

SEQUENCE5 = ("mnist", "fashion_mnist", "cifar10", "svhn", "omniglot")
TEN = tuple(f"{dataset}.{half}" for dataset in SEQUENCE5 for half in (1, 2))
SAME_FIRST_TASK = ("flashcards", "lwf")  # with nothing to keep yet they are naive
NAN = float("nan")


@dataclass(frozen=True)
class Method:
    """A strategy under the name that a table shows."""

    name: str
    config: dict[str, Any]
    size_a_task: int | None = None  # a coreset that keeps so many of every task grows from task to task
    trial: type[Strategy] | None = None  # in place of `flashcards`

    @property
    def kind(self) -> str:
        return str(self.config["kind"])

    def at(self, number: int) -> dict[str, Any]:
        """What the learn job of task `number` is told."""
        if number == 1 and self.kind in SAME_FIRST_TASK:
            return {"kind": "naive"}
        return self.config | ({"size": number * self.size_a_task} if self.size_a_task else {})

    def key(self, config: dict[str, Any]) -> str:
        """In the name of a step."""
        tried = self.trial is not None and config["kind"] == "flashcards"
        return f"{self.trial.__name__ if tried else config['kind']}-{short(config)}"

    def architecture(self, name: str) -> str:
        return name.replace("blk_", "vae_") if self.kind == "cl_vae" else name

    def cost(self, number: int) -> int:
        """Images through the network for each new one, so that the time left can be told."""
        if number == 1 or self.kind in ("naive", "ewc", "si"):
            return 1
        return {"joint": number, "vae_replay": 4}.get(self.kind, 2)


@dataclass(frozen=True)
class Scenario:
    name: str = "reconstruction"
    noise: float = 0.1

    @property
    def key(self) -> str:
        return self.name if self.name == "reconstruction" else f"{self.name}-{self.noise:g}"


RECONSTRUCTION = Scenario()


class Chain:
    """Steps that a learner took, one a task, of as many as it should."""

    steps: list[Made]

    @property
    def length(self) -> int:
        raise NotImplementedError

    @property
    def diverged(self) -> str | None:
        return next((step.result["diverged"] for step in self.steps if "diverged" in step.result), None)

    @property
    def is_whole(self) -> bool:
        return len(self.steps) == self.length and all("measures" in step.result for step in self.steps)

    @property
    def is_over(self) -> bool:
        """It went as far as it could."""
        return self.is_whole or self.diverged is not None


@dataclass(frozen=True)
class Learnt(Chain):
    """A chain: the steps it took, one a task. While an experiment is only planned every figure is not a number."""

    tasks: tuple[str, ...]
    steps: list[Made] = field(default_factory=list)

    @property
    def length(self) -> int:
        return len(self.tasks)

    @property
    def collapsed(self) -> list[str]:
        """Tasks after which the network told their images no better than one constant image would."""
        return [
            task
            for task, step in zip(self.tasks, self.steps, strict=False)
            if step.result.get("validation_mae", 0.0) >= step.result.get("constant_mae", 1.0)
        ]

    def matrix(self, field: str = "mae") -> list[list[float]]:
        """Row i: after task i, of every task so far."""
        return [
            [NAN if each[field] is None else each[field] for each in step.result["measures"]]
            for step in self.steps
            if "measures" in step.result
        ]

    @property
    def last(self) -> list[float]:
        return self.matrix()[-1] if self.is_whole else [NAN] * len(self.tasks)

    @property
    def average(self) -> float:
        return statistics.mean(self.last)

    @property
    def bwt(self) -> float:
        """Mean of M[i][i] - M[T][i] over all tasks but the last."""
        return backward(self.matrix(), self.last) if self.is_whole else NAN

    @property
    def learnt(self) -> float:
        """Mean of M[i][i], the error on each task when it was new: what is left of plasticity."""
        return statistics.mean(row[-1] for row in self.matrix()) if self.is_whole else NAN

    @property
    def memory(self) -> float:
        """MB beside the network, at the end: capsules, images, state."""
        if not self.is_whole:
            return NAN
        kept = self.steps[-1].result["memory"]
        return sum(size for what, size in kept.items() if what != "network") / 1e6

    @property
    def network(self) -> float:
        """MB of the network itself."""
        return self.steps[-1].result["memory"]["network"] / 1e6 if self.is_whole else NAN

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps) if self.is_whole else NAN


def backward(matrix: list[list[float]], last: list[float]) -> float:
    gains = [row[place] - last[place] for place, row in enumerate(matrix[:-1])]
    return statistics.mean(gains) if gains else NAN


class Course(Lab):
    """A lab for learners: all its steps are tasks."""

    def learn(
        self,
        tasks: tuple[str, ...],
        method: Method,
        seed: int,
        architecture: str,
        scenario: Scenario = RECONSTRUCTION,
    ) -> Learnt:
        architecture, size = method.architecture(architecture), self.size
        key = f"learn/{scenario.key}/{architecture}/{size.tests}-tests/seed-{seed}"
        chain = Learnt(tasks)
        for number, task in enumerate(tasks, start=1):
            config = method.at(number)
            key += f"/{task}+{method.key(config)}"
            done = Learnt(tasks, list(chain.steps))

            def make(out: Path, done: Learnt = done, config: dict[str, Any] = config) -> dict[str, Any]:
                told = {
                    "strategy": config,
                    "seed": seed,
                    "scenario": scenario.key,
                    "tasks": tasks[: len(done.steps) + 1],
                }
                with in_place(method.trial):
                    return told | self._learn_task(out, done, config, seed, architecture, scenario)

            made = self._step(key, method.cost(number) * size.images * size.epochs, make)
            chain.steps.append(made)
            if "diverged" in made.result or (self.kept_only and not made.result):
                break
        return chain

    def _learn_task(
        self, out: Path, done: Learnt, config: dict[str, Any], seed: int, architecture: str, scenario: Scenario
    ) -> dict[str, Any]:
        base, number = done.steps[-1] if done.steps else None, len(done.steps) + 1
        spec = {"kind": "learn", "learner": f"learner_{NOBODY}", "dataset": f"dataset_{NOBODY}", "strategy": config}
        # The same minibatches of new images for every strategy: nobody stops early.
        spec |= {"name": done.tasks[number - 1], "epochs": self.size.epochs, "patience": self.size.epochs}
        spec |= {"batch_size": self.size.batch, "learning_rate": self.size.learning_rate, "seed": seed}
        work = Work(
            spec=job_spec.validate_python(spec),
            out=out,
            model=None if base is None else self._model_at(base.folder, architecture),
            dataset=self._dataset(done.tasks[number - 1]),
            learner=self._learner(done, architecture, scenario),
            resume_seconds=1e9,
            refuse_collapse=False,
            threads=self.size.threads,
        )
        try:
            return run(work, Quiet(), lambda: False).result.model_dump(mode="json")
        except Diverged as diverged:
            return {"diverged": diverged.detail}

    def _learner(self, done: Learnt, architecture: str, scenario: Scenario) -> LearnerInput:
        folder = done.steps[-1].folder if done.steps else None
        return LearnerInput(
            scenario=scenario.name,
            noise=scenario.noise,
            clip=True,
            architecture=architecture_spec.validate_python(architecture),
            range=RANGE,
            tasks=[
                TaskInput(name=task, capsule=folder / capsule.of_task(number).name, test=self._dataset(task))
                for number, task in enumerate(done.tasks[: len(done.steps)], start=1)
            ],
            measures=[[TaskMeasure(**each) for each in step.result["measures"]] for step in done.steps],
            state=_kept(folder, STATE.name),
            images=_kept(folder, IMAGES.name),
        )

    def _tell(self, key: str, cost: float, seconds: float) -> None:
        """The whole life would fill the screen: whose it is, and what was learnt last."""
        _, scenario, architecture, _, seed, *tasks = key.split("/")
        super()._tell(f"{scenario} {architecture} {seed} task {len(tasks)}: {tasks[-1]}", cost, seconds)


def short(config: dict[str, Any]) -> str:
    """Six letters that stay the same as long as the config does."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:6]


def _kept(folder: Path | None, name: str) -> Path | None:
    return folder / name if folder is not None and (folder / name).exists() else None
