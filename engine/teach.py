"""Teach a network its images: Adam, early stop on a held-out share. The one training loop there is.

Loss of a batch: the error that the lesson's aim says, mean |f(x) - x| of an autoencoder, cross-entropy of a classifier,
and what the lesson's strategy adds to it. After each epoch the same error is taken over the held-out images, and the
weights of the best epoch are the model. The bar to pass is the best constant answer there is: a network that scores no
better has collapsed, however small its loss.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.data import shuffled
from engine.device import backend
from engine.errors import Diverged, Stopped
from engine.lesson import Lesson
from engine.models import chunk_size
from engine.noise import seen_through
from engine.resume import Standing, Training
from engine.spectral import weighted_alpha
from engine.strategies.base import Strategy
from engine.weights import save_weights
from engine.work import Product, Report, Work
from flashcards.contract.resources import Progress
from flashcards.contract.specs import TeachingSpec

FETCH_SECONDS = 0.5  # reading the loss makes a GPU's queue run dry: twice a second is enough for people


@dataclass(frozen=True)
class Taught:
    network: torch.nn.Module  # with the weights of its best epoch
    lesson: Lesson
    now: Standing
    chunk: int
    stopped_early: bool
    constant_error: float  # of the best constant answer
    seconds: float
    own_seconds: float  # without those of an earlier try
    products: list[Product]

    @property
    def train_rows(self) -> np.ndarray:
        return self.lesson.train_rows

    @property
    def validation_rows(self) -> np.ndarray:
        return self.lesson.validation_rows

    def stop_if(self, stop: Callable[[], bool]) -> Callable[[], None]:
        """For what is measured afterwards. No resume point: the last one is a few seconds old, and of a training."""

        def check() -> None:
            if stop():
                raise Stopped("stopped after the last epoch, before everything was measured", self.products)

        return check

    def told(self, work: Work) -> dict[str, object]:
        """What every result of a training says."""
        epochs, metric = self.now.epoch - 1, self.lesson.aim.metric
        return {
            "epochs": epochs,
            "best_epoch": self.now.best_epoch,
            "steps": self.now.step,
            "stopped_early": self.stopped_early and epochs < work.spec.epochs,
            f"train_{metric}": self.now.best_train_error,
            f"validation_{metric}": self.now.best_validation_error,
            f"constant_{metric}": self.constant_error,
            "weighted_alpha": weighted_alpha(self.network.state_dict()),
            "backend": backend(work.device),
            "threads": work.threads,
            "seconds": self.seconds,
            "images_per_second": epochs * len(self.train_rows) / self.own_seconds,
        }


def teach(
    work: Work, lesson: Lesson, report: Report, stop: Callable[[], bool], show: Callable[[Taught], list[Product]]
) -> Taught:
    """`show` makes products of the taught network; they are kept also where it turns out to have collapsed."""
    spec, device = work.spec, torch.device(work.device)
    images, strategy, aim = lesson.images, lesson.strategy, lesson.aim
    train_rows, validation_rows = lesson.train_rows, lesson.validation_rows
    batches = math.ceil(len(train_rows) / spec.batch_size)
    chunk = chunk_size(lesson.architecture, images.shape)

    training = Training.begin(spec, lesson.architecture, images.shape, device, lesson.weights)
    training.now.step, training.now.seconds = lesson.first_step, lesson.first_seconds
    strategy.begin(training, lesson)
    if work.resume is not None:
        _take_up(training, strategy, work, report)
    now, network, optimizer = training.now, training.network, training.optimizer
    watch = Watch(work, training, lesson, report, stop)

    stopped_early = False
    while now.epoch <= spec.epochs and not stopped_early:
        order = train_rows[shuffled(len(train_rows), spec.seed, now.epoch)]
        strategy.begin_epoch(now.epoch)
        network.train()
        while now.batch < batches:
            rows = order[now.batch * spec.batch_size : (now.batch + 1) * spec.batch_size]
            x_BCHW = images.batch(rows, device)
            strategy.begin_step(training.set_rate(spec, batches))
            loss, error = strategy.loss(x_BCHW, aim.target(x_BCHW, rows), now)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            strategy.after_backward()
            optimizer.step()
            strategy.after_step()
            training.loss_sum.add_(error.detach(), alpha=len(rows))
            now.batch += 1
            now.step += 1
            watch.after_step(len(rows))

        train_error = watch.loss()
        network.eval()  # with the running averages of a batch norm, as the model will be used
        predict = seen_through(lesson.noise, network)
        measured = aim.measure(predict, images, validation_rows, chunk, device, watch.stop_if_asked)
        validation_error = measured[aim.metric]
        watch.refuse_infinite(validation_error)
        told = {f"validation_{name}": value for name, value in measured.items()}
        report.metric(now.step, {f"train_{aim.metric}": train_error} | told)
        if not training.best or validation_error < now.best_validation_error:
            training.keep_best(train_error, validation_error)
            strategy.keep_best()
        stopped_early = now.epoch - now.best_epoch >= spec.patience
        training.next_epoch()

    network.eval().load_state_dict(training.best)
    if (merged := strategy.merge(network)) is not None:
        training.best = merged
        network.load_state_dict(merged)
    taught = Taught(
        network.requires_grad_(False),
        lesson,
        now,
        chunk,
        stopped_early,
        aim.constant(images, train_rows, validation_rows, chunk, device),
        watch.seconds(),
        watch.seconds() - lesson.first_seconds,
        [watch.save_best()],
    )
    taught.products.extend(show(taught))
    if work.refuse_collapse:
        aim.refuse_collapse(taught, device, report)
    return taught


class Watch:
    """What goes on beside the loop: telling, writing resume points, stopping. It reads numbers, it changes none."""

    def __init__(
        self,
        work: Work,
        training: Training,
        lesson: Lesson,
        report: Report,
        stop: Callable[[], bool],
    ) -> None:
        self.work, self.training, self.report, self.stop = work, training, report, stop
        self.lesson = lesson
        self.train_images = len(lesson.train_rows)
        mine = math.ceil(self.train_images / work.spec.batch_size) * work.spec.epochs
        self.steps = lesson.first_step + mine + lesson.later_steps
        self.earlier_seconds = training.now.seconds
        self.began = self.written = time.monotonic()
        self.fetched = -math.inf
        self.shown_loss: float | None = None
        self.seen = 0  # images learnt from in this attempt

    def seconds(self) -> float:
        return self.earlier_seconds + time.monotonic() - self.began

    def after_step(self, images: int) -> None:
        self.seen += images
        clock = time.monotonic()
        if clock - self.fetched >= FETCH_SECONDS:
            self.shown_loss = self.loss()
            self.fetched = clock
        self.report.progress(self._progress(clock))
        self.stop_if_asked()
        if clock - self.written >= self.work.resume_seconds:
            self._write_resume_point()

    def loss(self) -> float:
        """Mean over the images of this epoch so far. A NaN stays in the sum, so it is found here, however late."""
        seen = min(self.training.now.batch * self.work.spec.batch_size, self.train_images)
        loss = self.training.loss_sum.item() / seen
        self.refuse_infinite(loss)
        return loss

    def refuse_infinite(self, error: float) -> None:
        if not math.isfinite(error):
            spec: TeachingSpec = self.work.spec
            raise Diverged(
                f"the error became {error} in epoch {self.training.now.epoch}; take a learning_rate below "
                f"{spec.learning_rate:g}, and see that the images lie in the range the network was given",
                self._best_so_far(),
            )

    def stop_if_asked(self) -> None:
        if not self.stop():
            return
        self._write_resume_point()
        now = self.training.now
        raise Stopped(
            f"stopped in epoch {now.epoch} of {self.work.spec.epochs}, after {now.step} steps"
            + (f"; the weights of epoch {now.best_epoch} are the best so far" if now.best_epoch else ""),
            self._best_so_far(),
        )

    def save_best(self) -> Product:
        lesson = self.lesson
        path = self.work.out / lesson.product.name
        save_weights(path, self.training.best, lesson.architecture, lesson.images.shape, lesson.images.range)
        return lesson.product

    def _best_so_far(self) -> list[Product]:
        return [self.save_best()] if self.training.best else []

    def _write_resume_point(self) -> None:
        self.loss()  # a training that went wrong is no place to come back to
        self.training.now.seconds = self.seconds()
        about = self.lesson.about | {"build": _build(self.work)}
        path = self.training.write(self.work.out / "resume", about, self.lesson.strategy.tensors())
        self.written = time.monotonic()
        self.report.resume_point(path, self.training.now.step)

    def _progress(self, clock: float) -> Progress:
        now = self.training.now
        rate = self.seen / max(clock - self.began, 1e-9)
        left = (self.work.spec.epochs - now.epoch + 1) * self.train_images - min(
            now.batch * self.work.spec.batch_size, self.train_images
        )
        left += self.lesson.later_steps * self.work.spec.batch_size
        return Progress(
            fraction=now.step / self.steps,
            step=now.step,
            steps=self.steps,
            epoch=now.epoch,
            loss=self.shown_loss,
            rate=rate,
            unit="images",
            eta_seconds=left / rate if rate else None,
        )


def _build(work: Work) -> str:
    """Two runs agree to the bit where this agrees."""
    return f"{backend(work.device)}, {torch.backends.cpu.get_cpu_capability()}, {work.threads} threads"


def _take_up(training: Training, strategy: Strategy, work: Work, report: Report) -> None:
    told, kept = training.take_up(work.resume)
    strategy.take_up(kept)
    earlier, here = told["build"], _build(work)
    if earlier != here:
        report.note(
            f"this training was begun on {earlier} and goes on on {here}: the last digits of its weights may differ "
            "from those of an unbroken run"
        )
