"""The learn job: a learner learns its next task, and what it keeps for the one after is measured.

From the network of the base version: train on the new images by the strategy, measure every task so far, refresh the
capsules. Where earlier tasks became worse than the budget allows it is tried once more, twice as carefully.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file

from engine import capsule
from engine.errors import ForgotTooMuch, Stopped
from engine.files import digest_of, safetensors_bytes, write_whole
from engine.learn_measures import Forgetting, estimate, forgetting, measure_task
from engine.lesson import Lesson
from engine.models import Autoencoder, build, chunk_size
from engine.noise import Noise
from engine.refresh import Refreshed, refresh
from engine.resume import told_of
from engine.strategies import open_strategy
from engine.strategies.base import Kept, Strategy
from engine.strategies.setting import Setting
from engine.task_data import TaskData, load_task, test_images
from engine.teach import Taught, teach
from engine.weights import WEIGHTS, load_network
from engine.work import Outcome, Product, Report, Work
from flashcards.contract.results import LearnResult, Memory, TaskMeasure
from flashcards.contract.specs import LearnSpec
from flashcards.contract.strategies import KEEPS_DATA

STATE = Product("state.safetensors", "application/octet-stream")
IMAGES = Product("images.npz", "application/octet-stream", shows_data=True)
STATE_OF = "flashcards.strategy"  # in its metadata: another strategy has no use for it
KNOBS = ("count", "weight")  # of a strategy that can be more careful
TRIES = 2


def learn(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    work, first = _where_to_begin(work, report)
    desk = Desk.open(work, report, stop)
    done = desk.attempt(work, first)
    if done.too_much(work.spec) and first.number < TRIES and desk.can_be_careful:
        report.note(f"{done.words(work.spec)}: tried once more, with twice the cards and twice the weight of the old")
        second = Try(first.number + 1, done.taught.now.step, done.taught.seconds)
        done = desk.attempt(replace(work, resume=None), second)
    if done.too_much(work.spec):
        raise ForgotTooMuch(
            f"{done.words(work.spec)}; the learner stays as it was. Take a strategy that keeps more, a higher count or "
            "weight, or a larger max_forgetting"
        )
    return desk.outcome(done)


class Try(NamedTuple):
    number: int = 1
    step: int = 0  # taken before it
    seconds: float = 0.0


def _where_to_begin(work: Work, report: Report) -> tuple[Work, Try]:
    """A resume point is of use only to who starts from the same version."""
    if work.resume is None:
        return work, Try()
    told = told_of(work.resume)
    if told["base"] != _base_digest(work):
        report.note("an earlier attempt started from another version of the learner: the task is begun anew")
        return replace(work, resume=None), Try()
    return work, Try(told["try"])


def _base_digest(work: Work) -> str | None:
    return None if work.model is None else work.model.digest


@dataclass(frozen=True)
class Done:
    """A try that ran to its end, and how the learner stands to its tasks."""

    setting: Setting
    strategy: Strategy
    taught: Taught
    row: list[TaskMeasure]
    refreshed: list[Refreshed]
    worst: Forgetting | None

    def too_much(self, spec: LearnSpec) -> bool:
        return self.worst is not None and spec.max_forgetting is not None and self.worst.breaks(spec.max_forgetting)

    def words(self, spec: LearnSpec) -> str:
        worst, budget = self.worst, spec.max_forgetting
        allowed = f"{budget.absolute:.6g}" if budget.absolute is not None else f"{budget.relative:.4g} of it"
        before = "unknown" if worst.before is None else f"{worst.before:.6g}"
        return (
            f"the error on task {worst.task}, {before} before, rose by {worst.rise:.6g} (measured on {worst.on}), and "
            f"{allowed} is allowed"
        )


@dataclass(frozen=True)
class Desk:
    """Everything that both tries share."""

    work: Work
    data: TaskData
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
        low, high = learner.range
        denoising = learner.scenario == "denoising"
        noise = Noise(learner.noise * (high - low), learner.range, learner.clip) if denoising else None
        base = None if work.model is None else load_network(work.model, device)
        chunk = chunk_size(learner.architecture, data.images.shape)
        return cls(work, data, base, noise, chunk, device, report, stop)

    @property
    def name(self) -> str:
        return self.work.spec.name or f"task {len(self.work.learner.tasks) + 1}"

    @property
    def can_be_careful(self) -> bool:
        return any(hasattr(self.work.spec.strategy, knob) for knob in KNOBS)

    def attempt(self, work: Work, which: Try) -> Done:
        setting = self._setting(which)
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
            about={"base": _base_digest(work), "try": which.number},
            first_step=which.step,
            first_seconds=which.seconds,
        )
        taught = teach(work, lesson, self.report, self.stop, lambda _: [])
        between = taught.stop_if(self.stop)
        setting = replace(setting, between=between)
        digest = digest_of(work.out / WEIGHTS.name)
        refreshed = [
            refresh(setting, number, task, taught.network, digest)
            for number, task in enumerate(work.learner.tasks, start=1)
        ]
        earlier = self._earlier(between)
        row = self._row(taught, earlier, refreshed, between)
        return Done(setting, strategy, taught, row, refreshed, forgetting(earlier, row, refreshed))

    def _setting(self, which: Try) -> Setting:
        def between() -> None:
            if self.stop():
                raise Stopped("stopped before the first step")

        config = self.work.spec.strategy
        if which.number > 1:
            harder = {knob: 2 * getattr(config, knob) for knob in KNOBS if hasattr(config, knob)}
            config = config.model_copy(update=harder)
        state, kept_images = self._kept()
        return Setting(
            work=self.work,
            config=config,
            base=self.base,
            images=self.data.images,
            train_rows=self.data.train_rows,
            validation_rows=self.data.validation_rows,
            own_rows=self.data.own_rows,
            noise=self.noise,
            chunk=self.chunk,
            device=self.device,
            report=self.report,
            between=between,
            state=state,
            kept_images=kept_images,
        )

    def _kept(self) -> tuple[dict[str, torch.Tensor], dict[str, np.ndarray]]:
        learner, images = self.work.learner, {}
        if learner.images is not None:
            with np.load(learner.images, allow_pickle=False) as arrays:
                images = dict(arrays)
        return ({} if learner.state is None else load_file(learner.state, str(self.device))), images

    def _measured(self, name: str, network: torch.nn.Module, test, between: Callable[[], None]) -> TaskMeasure:
        return measure_task(name, network, test, self.noise, self.chunk, self.device, between)

    def _tests(self) -> list:
        learner, shape = self.work.learner, self.data.images.shape
        return [task.test and test_images(task.test, learner.range, shape) for task in learner.tasks]

    def _earlier(self, between: Callable[[], None]) -> list[TaskMeasure]:
        """The base version's row; what it does not know is measured where there are images."""
        learner = self.work.learner
        known = {measure.task: measure for measure in (learner.measures[-1] if learner.measures else [])}
        row = []
        for place, (task, test) in enumerate(zip(learner.tasks, self._tests(), strict=True)):
            last = learner.measures[-1] if learner.measures else []
            measure = last[place] if place < len(last) else known.get(task.name, TaskMeasure(task=task.name))
            if measure.mae is None and test is not None:
                found = self._measured(task.name, self.base, test, between)
                measure = found.model_copy(update={"estimated_mae": measure.estimated_mae})
            row.append(measure)
        return row

    def _row(
        self,
        taught: Taught,
        earlier: list[TaskMeasure],
        refreshed: list[Refreshed],
        between: Callable[[], None],
    ) -> list[TaskMeasure]:
        row = []
        for last, test, cards in zip(earlier, self._tests(), refreshed, strict=True):
            known = TaskMeasure(task=last.task)
            if test is not None:
                known = self._measured(last.task, taught.network, test, between)
            row.append(known.model_copy(update={"estimated_mae": estimate(last, cards)}))
        new = self._measured(self.name, taught.network, self.data.test, between)
        return [*row, new.model_copy(update={"estimated_mae": new.mae})]

    def outcome(self, done: Done) -> Outcome:
        work, spec, taught = self.work, self.work.spec, done.taught
        between = taught.stop_if(self.stop)
        digest = digest_of(work.out / WEIGHTS.name)
        every = np.arange(len(self.data.images))
        meter = capsule.measure(taught.network, self.data.images, every, self.chunk, self.device, between)
        capsules = [*(each.capsule for each in done.refreshed), meter.capsule(digest)]
        products = [
            WEIGHTS,
            *(capsule.save(work.out, each, capsule.of_task(n)) for n, each in enumerate(capsules, start=1)),
        ]
        done.strategy.setting = done.setting
        kept = done.strategy.end(taught.network)
        products += self._save(kept)
        products += done.strategy.products()
        shape = self.data.images.shape
        architecture = work.learner.architecture
        untaught = build(architecture, shape, torch.Generator().manual_seed(spec.seed)).to(self.device).eval()
        before = None
        if self.base is not None:
            before = self._measured(self.name, self.base, self.data.test, between)
        result = LearnResult(
            base_version=spec.base_version,
            task=done.setting.number,
            images=len(taught.train_rows),
            measures=done.row,
            before=before,
            random_mae=self._measured(self.name, untaught, self.data.test, between).mae,
            forgetting=None if done.worst is None else done.worst.rise,
            forgetting_on=None if done.worst is None else done.worst.on,
            recipes=done.strategy.recipes,
            memory=Memory(
                network=architecture.size(shape),
                capsules=sum(len(each.to_bytes()) for each in capsules),
                images=sum(array.nbytes for array in kept.images.values()),
                state=sum(tensor.nbytes for tensor in kept.state.values()),
            ),
            keeps_data=spec.strategy.kind in KEEPS_DATA,
            parameters=architecture.parameters(shape),
            capsule=capsules[-1].facts,
            **taught.told(work),
        )
        return Outcome(result, products)

    def _save(self, kept: Kept) -> list[Product]:
        products = []
        if kept.state:
            about = {STATE_OF: self.work.spec.strategy.kind}
            write_whole(self.work.out / STATE.name, safetensors_bytes(kept.state, about))
            products.append(STATE)
        if kept.images:
            buffer = io.BytesIO()
            np.savez(buffer, **kept.images)
            write_whole(self.work.out / IMAGES.name, buffer.getvalue())
            products.append(IMAGES)
        return products
