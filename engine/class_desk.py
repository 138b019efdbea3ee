"""Where a learner of classes sits down to a task: its classifier learns first, then what makes cards of it.

Two trainings in one job, so a resume point says in which it was written. One of the second holds the classifier as the
first left it, and what the first had to tell.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from engine import capsule
from engine.aims import Classify, Reconstruct, ReconstructSquares
from engine.class_data import ClassTaskData, ClassTest, earlier_tests, load_class_task, spans
from engine.class_refresh import ClassRefreshed, class_refresh
from engine.class_rows import Measured, estimate, forgetting, measure_classes
from engine.desk import Try, base_digest, can_be_careful, careful, kept_images, kept_state
from engine.errors import Stopped
from engine.files import digest_of
from engine.learn_measures import Forgetting
from engine.lesson import Lesson
from engine.models import Autoencoder, Classifier, build, chunk_size
from engine.probe import forward_unverified
from engine.resume import kept_in, told_of
from engine.strategies import open_strategy
from engine.strategies.base import Material, Strategy
from engine.strategies.card_maker import CardMakerReplay
from engine.strategies.setting import Classes, Setting
from engine.teach import Taught, teach
from engine.weights import WEIGHTS, load_network, save_weights
from engine.work import Product, Report, Work
from flashcards.contract.architecture import ClassifierFamily
from flashcards.contract.capsule import Capsule
from flashcards.contract.results import TaskMeasure

AUTOENCODER = Product("autoencoder.safetensors", "application/octet-stream")
FIRST, SECOND = "classifier", "autoencoder"  # the two trainings, as resume points call them


@dataclass(frozen=True)
class Answerer:
    """The classifier once it has learnt the task, and what its training tells."""

    network: Classifier
    told: dict[str, object]

    @property
    def step(self) -> int:
        return self.told["steps"]

    @property
    def seconds(self) -> float:
        return self.told["seconds"]


@dataclass(frozen=True)
class ClassDone:
    """A try that ran to its end, and how the learner then stands to its tasks."""

    strategy: Strategy
    material: Material
    answerer: Answerer
    maker: Taught | None  # None: the strategy makes no cards
    measured: list[Measured | None]  # of every task so far, None where its images are gone
    row: list[TaskMeasure]
    refreshed: list[ClassRefreshed]
    capsule: Capsule | None  # of the new task
    rises: list[Forgetting]  # of the shares of wrong answers to the earlier tasks

    @property
    def next_try(self) -> tuple[int, float]:
        if self.maker is None:
            return self.answerer.step, self.answerer.seconds
        return self.maker.now.step, self.maker.seconds


@dataclass(frozen=True, kw_only=True)
class ClassDesk:
    work: Work
    data: ClassTaskData
    tests: list[ClassTest | None]  # of the earlier tasks
    base: Classifier | None
    autoencoder: Autoencoder | None
    architecture: ClassifierFamily  # with the head of the new task
    chunk: int
    device: torch.device
    report: Report
    stop: Callable[[], bool]

    @classmethod
    def open(cls, work: Work, report: Report, stop: Callable[[], bool]) -> ClassDesk:
        learner, device = work.learner, torch.device(work.device)
        data = load_class_task(work, report)
        shape = data.task.images.shape
        networks = [None if each is None else load_network(each, device) for each in (work.model, work.autoencoder)]
        for network, model in zip(networks, (work.model, work.autoencoder), strict=True):
            if network is not None:
                forward_unverified(network, model, device)
        architecture = learner.architecture.model_copy(update={"heads": data.place.heads})
        both = (architecture, learner.autoencoder)
        return cls(
            work=work,
            data=data,
            tests=earlier_tests(learner, shape),
            base=networks[0],
            autoencoder=networks[1],
            architecture=architecture,
            chunk=min(chunk_size(each, shape) for each in both),
            device=device,
            report=report,
            stop=stop,
        )

    @property
    def name(self) -> str:
        """Of the new task."""
        return self.work.spec.name or f"task {len(self.work.learner.tasks) + 1}"

    @property
    def multihead(self) -> bool:
        return self.work.learner.scenario == "task_incremental"

    @property
    def can_be_careful(self) -> bool:
        return can_be_careful(self.work.spec.strategy)

    def attempt(self, work: Work, which: Try) -> ClassDone:
        """`work` differs from the desk's in what it resumes from."""
        setting = self.setting(which)
        strategy = open_strategy(setting)
        material = strategy.material()
        resumed = None if work.resume is None else told_of(work.resume)
        if resumed is not None and resumed["phase"] == SECOND:
            answerer = self._as_it_was(work, resumed)
        else:
            answerer = self._teach_classifier(work, which, strategy, material)
            work = replace(work, resume=None)
        maker = self._teach_maker(work, which, strategy, answerer) if strategy.makes_cards else None
        if maker is None and work.autoencoder is not None:
            shutil.copyfile(work.autoencoder.path, work.out / AUTOENCODER.name)
        return self._done(setting, strategy, material, answerer, maker)

    def stop_if_asked(self) -> None:
        """No resume point: what is beside the training takes seconds, and the last one is as old."""
        if self.stop():
            raise Stopped("stopped beside the training, while cards were made or tasks were measured")

    def measure(self, name: str, network: Classifier, test: ClassTest) -> Measured:
        return measure_classes(name, network, test, self.multihead, self.chunk, self.device, self.stop_if_asked)

    def setting(self, which: Try) -> Setting:
        task, tasks = self.data.task, self.work.learner.tasks
        earlier = spans(tasks) if self.multihead else [(0, self.data.place.classes)][: len(tasks)]
        return Setting(
            work=self.work,
            config=careful(self.work.spec.strategy, which),
            base=self.base,
            images=task.images,
            train_rows=task.train_rows,
            validation_rows=task.validation_rows,
            own_rows=task.own_rows,
            noise=None,
            chunk=self.chunk,
            device=self.device,
            report=self.report,
            between=self.stop_if_asked,
            state=kept_state(self.work, self.report, self.device),
            kept_images=kept_images(self.work),
            classes=Classes(self.data.labels_N, self.data.place, earlier, self.autoencoder),
        )

    def aim(self, strategy: Strategy, material: Material) -> Classify:
        """Who sees nothing old tells the new task's classes apart among themselves alone."""
        place = self.data.place
        return Classify(material.labels_N, None if strategy.sees_old else (place.first, place.classes))

    def _teach_classifier(self, work: Work, which: Try, strategy: Strategy, material: Material) -> Answerer:
        lesson = Lesson(
            architecture=self.architecture,
            images=material.images,
            train_rows=material.train_rows,
            validation_rows=material.validation_rows,
            weights=self._first_weights(),
            aim=self.aim(strategy, material),
            strategy=strategy,
            about={"base": base_digest(work), "try": which, "phase": FIRST},
            first_step=which.first_step,
            first_seconds=which.first_seconds,
            later_steps=self._maker_steps if strategy.makes_cards else 0,
        )
        taught = teach(work, lesson, self.report, self.stop, lambda _: [])
        return Answerer(taught.network, taught.told(work))

    def _first_weights(self) -> dict[str, torch.Tensor] | None:
        """The old ones, and random ones of the seed for a new head."""
        if self.base is None:
            return None
        generator = torch.Generator().manual_seed(self.work.spec.seed)
        fresh = build(self.architecture, self.data.task.images.shape, generator).to(self.device)
        return fresh.state_dict() | self.base.state_dict()

    def _as_it_was(self, work: Work, resumed: dict[str, object]) -> Answerer:
        network = build(self.architecture, self.data.task.images.shape).to(self.device)
        network.load_state_dict(kept_in(work.resume, CardMakerReplay.CLASSIFIER, self.device))
        answerer = Answerer(network.requires_grad_(False).eval(), resumed["classifier"])
        self._save(answerer)
        return answerer

    def _save(self, answerer: Answerer) -> None:
        images = self.data.task.images
        path, weights = self.work.out / WEIGHTS.name, answerer.network.state_dict()
        save_weights(path, weights, self.architecture, images.shape, images.range)

    @property
    def _maker_epochs(self) -> int:
        spec = self.work.spec
        return spec.autoencoder_epochs or max(1, spec.epochs // 2)

    @property
    def _maker_steps(self) -> int:
        return math.ceil(len(self.data.task.train_rows) / self.work.spec.batch_size) * self._maker_epochs

    def _teach_maker(self, work: Work, which: Try, strategy: Strategy, answerer: Answerer) -> Taught:
        task, architecture = self.data.task, work.learner.autoencoder
        lesson = Lesson(
            architecture=architecture,
            images=task.images,
            train_rows=task.train_rows,
            validation_rows=task.validation_rows,
            weights=self._maker_weights(answerer),
            aim=ReconstructSquares() if self.multihead else Reconstruct(),
            strategy=CardMakerReplay(strategy, answerer.network),
            product=AUTOENCODER,
            about={"base": base_digest(work), "try": which, "phase": SECOND, "classifier": answerer.told},
            first_step=answerer.step,
            first_seconds=answerer.seconds,
        )
        told = {"epochs": self._maker_epochs, "optimizer": "adam", "learning_rate": work.spec.adam_rate}
        spec = work.spec.model_copy(update=told)
        return teach(replace(work, spec=spec), lesson, self.report, self.stop, lambda _: [])

    def _maker_weights(self, answerer: Answerer) -> dict[str, torch.Tensor]:
        """The old ones; with the classifier's encoder where the two have the same."""
        generator = torch.Generator().manual_seed(self.work.spec.seed)
        fresh = build(self.work.learner.autoencoder, self.data.task.images.shape, generator).to(self.device)
        weights = fresh.state_dict() | ({} if self.autoencoder is None else self.autoencoder.state_dict())
        if self.shares_encoder(weights):
            weights |= {f"encoder.{name}": each for name, each in answerer.network.encoder.state_dict().items()}
        return weights

    def shares_encoder(self, weights: dict[str, torch.Tensor]) -> bool:
        """Tensor for tensor: what the classifier sees in an image can then be what the autoencoder begins with."""
        shape = self.data.task.images.shape
        theirs = {name: sides for name, sides in self.architecture.tensors(shape) if name.startswith("encoder.")}
        ours = {name: tuple(each.shape) for name, each in weights.items() if name.startswith("encoder.")}
        return ours == theirs

    def _done(
        self, setting: Setting, strategy: Strategy, material: Material, answerer: Answerer, maker: Taught | None
    ) -> ClassDone:
        network = answerer.network
        digest = None if maker is None else digest_of(self.work.out / AUTOENCODER.name)
        refreshed = [
            class_refresh(setting, number, task, network, None if maker is None else maker.network, digest)
            for number, task in enumerate(self.work.learner.tasks, start=1)
        ]
        new_capsule = None if maker is None else self._measured_capsule(maker.network, digest)
        earlier = self._earlier()
        names = [*(task.name for task in self.work.learner.tasks), self.name]
        measured = [
            None if test is None else self.measure(name, network, test)
            for name, test in zip(names, [*self.tests, self.data.test], strict=True)
        ]
        row = [TaskMeasure(task=name) if each is None else each.row for name, each in zip(names, measured, strict=True)]
        estimates = [estimate(last, each.agreement) for last, each in zip(earlier, refreshed, strict=True)]
        row = [
            each.model_copy(update={"estimated_accuracy": value})
            for each, value in zip(row, [*estimates, row[-1].accuracy], strict=True)
        ]
        rises = forgetting(earlier, row, [each.agreement for each in refreshed])
        return ClassDone(strategy, material, answerer, maker, measured, row, refreshed, new_capsule, rises)

    def _measured_capsule(self, network: Autoencoder, digest: str | None) -> Capsule:
        """Of the new task, by class as well, while its images are there."""
        images, place = self.data.task.images, self.data.place
        where = (self.chunk, self.device, self.stop_if_asked)
        whole = capsule.measure(network, images, np.arange(len(images)), *where).capsule(digest)
        class_N = self.data.labels_N - place.first
        return replace(whole, by_class=capsule.measure_classes(network, images, class_N, place.classes, *where))

    def _earlier(self) -> list[TaskMeasure]:
        """The base version's row; what it does not say is measured where there are images."""
        learner, row = self.work.learner, []
        last = learner.measures[-1] if learner.measures else []
        for place, (task, test) in enumerate(zip(learner.tasks, self.tests, strict=True)):
            known = last[place] if place < len(last) else TaskMeasure(task=task.name)
            if known.accuracy is None and test is not None:
                measured = self.measure(task.name, self.base, test).row
                known = measured.model_copy(update={"estimated_accuracy": known.estimated_accuracy})
            row.append(known)
        return row
