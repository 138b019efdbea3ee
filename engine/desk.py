"""Where a learner sits down to a task: what all tries at it share, and one try."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from engine.errors import Stopped
from engine.files import digest_of
from engine.learn_measures import Forgetting, estimate, forgetting, known_error, measure_task
from engine.lesson import Lesson
from engine.models import Autoencoder, chunk_size
from engine.noise import Noise
from engine.probe import forward_unverified
from engine.refresh import Refreshed, refresh
from engine.strategies import open_strategy
from engine.strategies.base import Strategy
from engine.strategies.setting import Setting
from engine.task_data import TaskData, TestImages, load_task, test_images
from engine.teach import Taught, teach
from engine.weights import WEIGHTS, load_network
from engine.work import Report, Work
from flashcards.contract.results import TaskMeasure
from flashcards.contract.strategies import Strategy as Config

STATE_OF = "flashcards.strategy"  # in the metadata of a state: another strategy has no use for it
KNOBS = ("count", "share", "weight")  # of a strategy that can be more careful


class Try(NamedTuple):
    number: int = 1
    first_step: int = 0  # taken before it
    first_seconds: float = 0.0


def careful(config: Config, which: Try) -> Config:
    """From the second try on with twice the weight of the old and twice the cards."""
    if which.number == 1:
        return config
    turned = {knob: getattr(config, knob, None) for knob in KNOBS}
    return config.model_copy(update={knob: 2 * value for knob, value in turned.items() if value is not None})


def can_be_careful(config: Config) -> bool:
    return any(hasattr(config, knob) for knob in KNOBS)


def kept_state(work: Work, report: Report, device: torch.device) -> dict[str, torch.Tensor]:
    """What the same strategy kept at the base version."""
    path, kind = work.learner.state, work.spec.strategy.kind
    if path is None:
        return {}
    with safe_open(path, "pt") as file:
        owner = (file.metadata() or {}).get(STATE_OF)
    if owner == kind:
        return load_file(path, str(device))
    report.note(f"what strategy {owner} kept is of no use to {kind}, and ends here")
    return {}


def kept_images(work: Work) -> dict[str, np.ndarray]:
    path = work.learner.images
    if path is None:
        return {}
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def base_digest(work: Work) -> str | None:
    return None if work.model is None else work.model.digest


@dataclass(frozen=True)
class Done:
    """A try that ran to its end, and how the learner then stands to its tasks."""

    strategy: Strategy
    taught: Taught
    row: list[TaskMeasure]
    refreshed: list[Refreshed]  # capsules of the earlier tasks
    rises: list[Forgetting]  # of the errors on the earlier tasks

    @property
    def next_try(self) -> tuple[int, float]:
        """Steps and seconds that lie behind."""
        return self.taught.now.step, self.taught.seconds


@dataclass(frozen=True, kw_only=True)
class Desk:
    work: Work
    data: TaskData
    tests: list[TestImages | None]  # of the earlier tasks
    base: Autoencoder | None
    noise: Noise | None
    chunk: int
    device: torch.device
    report: Report
    stop: Callable[[], bool]

    @classmethod
    def open(cls, work: Work, report: Report, stop: Callable[[], bool]) -> "Desk":
        learner, device = work.learner, torch.device(work.device)
        data = load_task(work, report)
        base = None if work.model is None else load_network(work.model, device)
        if base is not None:
            forward_unverified(base, work.model, device)
        low, high = learner.range
        denoising = learner.scenario == "denoising"
        return cls(
            work=work,
            data=data,
            tests=[task.test and test_images(task.test, learner.range, data.images.shape) for task in learner.tasks],
            base=base,
            noise=Noise(learner.noise * (high - low), learner.range, learner.clip) if denoising else None,
            chunk=chunk_size(learner.architecture, data.images.shape),
            device=device,
            report=report,
            stop=stop,
        )

    @property
    def name(self) -> str:
        """Of the new task."""
        return self.work.spec.name or f"task {len(self.work.learner.tasks) + 1}"

    @property
    def can_be_careful(self) -> bool:
        return can_be_careful(self.work.spec.strategy)

    def attempt(self, work: Work, which: Try) -> Done:
        """`work` differs from the desk's in what it resumes from."""
        setting = self.setting(which)
        strategy = open_strategy(setting)
        material = strategy.material()
        lesson = Lesson(
            architecture=work.learner.architecture,
            images=material.images,
            train_rows=material.train_rows,
            validation_rows=material.validation_rows,
            weights=None if self.base is None else self.base.state_dict(),
            noise=self.noise,
            strategy=strategy,
            about={"base": base_digest(work), "try": which},
            first_step=which.first_step,
            first_seconds=which.first_seconds,
        )
        taught = teach(work, lesson, self.report, self.stop, lambda _: [])
        digest = digest_of(work.out / WEIGHTS.name)
        earlier = self._earlier()
        refreshed = [
            refresh(setting, number, task, taught.network, digest, known_error(last))
            for number, (task, last) in enumerate(zip(work.learner.tasks, earlier, strict=True), start=1)
        ]
        row = self._row(taught, earlier, refreshed)
        return Done(strategy, taught, row, refreshed, forgetting(earlier, row, refreshed))

    def stop_if_asked(self) -> None:
        """No resume point: what is beside the training takes seconds, and the last one is as old."""
        if self.stop():
            raise Stopped("stopped beside the training, while cards were made or tasks were measured")

    def measure(self, name: str, network: torch.nn.Module, test: TestImages) -> TaskMeasure:
        return measure_task(name, network, test, self.noise, self.chunk, self.device, self.stop_if_asked)

    def setting(self, which: Try) -> Setting:
        return Setting(
            work=self.work,
            config=careful(self.work.spec.strategy, which),
            base=self.base,
            images=self.data.images,
            train_rows=self.data.train_rows,
            validation_rows=self.data.validation_rows,
            own_rows=self.data.own_rows,
            noise=self.noise,
            chunk=self.chunk,
            device=self.device,
            report=self.report,
            between=self.stop_if_asked,
            state=kept_state(self.work, self.report, self.device),
            kept_images=kept_images(self.work),
        )

    def _earlier(self) -> list[TaskMeasure]:
        """The base version's row; what it does not say is measured where there are images."""
        learner, row = self.work.learner, []
        last = learner.measures[-1] if learner.measures else []
        for place, (task, test) in enumerate(zip(learner.tasks, self.tests, strict=True)):
            known = last[place] if place < len(last) else TaskMeasure(task=task.name)
            if known.mae is None and test is not None:
                measured = self.measure(task.name, self.base, test)
                known = measured.model_copy(update={"estimated_mae": known.estimated_mae})
            row.append(known)
        return row

    def _row(self, taught: Taught, earlier: list[TaskMeasure], refreshed: list[Refreshed]) -> list[TaskMeasure]:
        row = []
        for task, last, test, cards in zip(self.work.learner.tasks, earlier, self.tests, refreshed, strict=True):
            measured = TaskMeasure(task=task.name)
            if test is not None:
                measured = self.measure(task.name, taught.network, test)
            row.append(measured.model_copy(update={"estimated_mae": estimate(last, cards)}))
        new = self.measure(self.name, taught.network, self.data.test)
        return [*row, new.model_copy(update={"estimated_mae": new.mae})]
