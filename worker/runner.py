"""The process that touches tensors: `python -m worker.runner`. The only module that sees the engine.

It imports torch, then it is the nursery that runners are forked from, over the socket that is its stdin. A runner waits
for one assignment on its own stdin. It reads `<attempt>/in`, writes `<attempt>/out`, and reports on stdout. It has no
credentials. When stdin closes, whoever asked for it is gone, and it goes too.
"""

import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

from engine import run as engine_run
from engine.errors import EngineError, Stopped
from engine.warm import warm_up
from engine.work import CardsInput, DatasetInput, LearnerInput, ModelInput, Outcome, Product, TaskInput, UnitInput, Work
from flashcards.contract.base import Record
from flashcards.contract.resources import Failure, Progress
from worker.messages import (
    Assignment,
    FileMade,
    SaidDone,
    SaidFailed,
    SaidNote,
    SaidProgress,
    SaidResumePoint,
    SaidStopped,
    StagedCards,
    StagedDataset,
    StagedLearner,
    StagedModel,
    StagedTask,
)
from worker.nursery import Nursery

REPORT_SECONDS = 0.5
ORPHANED = 70


class Line:
    """The way up to the supervisor. Stray prints of libraries go to stderr, which is the job's log."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def say(self, message: Record) -> None:
        with self._lock:
            self._file.write(message.model_dump_json() + "\n")


class Reports:
    """The engine speaks at every step; the supervisor hears it twice a second."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._said_at = 0.0
        self._metrics: list[tuple[int, dict[str, float]]] = []
        self._latest = Progress()

    def progress(self, progress: Progress) -> None:
        self._latest = progress
        if time.monotonic() - self._said_at >= REPORT_SECONDS:
            self.flush()

    def metric(self, step: int, values: dict[str, float]) -> None:
        self._metrics.append((step, values))

    def resume_point(self, path: Path, step: int) -> None:
        self.flush()
        self._line.say(SaidResumePoint(file=path.name, step=step))

    def note(self, text: str) -> None:
        self._line.say(SaidNote(text=text))

    def finish(self) -> None:
        """A finished job must not show 98 % for ever because the last report came too soon after another."""
        self._latest = self._latest.model_copy(update={"fraction": 1.0, "eta_seconds": 0.0})
        self.flush()

    def flush(self) -> None:
        self._said_at = time.monotonic()
        metrics, self._metrics = self._metrics, []
        self._line.say(SaidProgress(progress=self._latest, metrics=metrics))


def listen() -> "queue.SimpleQueue[str]":
    """The first line of stdin is the assignment; its end is the end of this process."""
    assignments: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for text in sys.stdin:
            assignments.put(text)
        os._exit(ORPHANED)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    return assignments


def as_work(assignment: Assignment) -> Work:
    return Work(
        spec=assignment.spec,
        out=Path(assignment.out),
        model=as_model(assignment.model),
        dataset=as_dataset(assignment.dataset),
        cards=as_cards(assignment.cards),
        learner=as_learner(assignment.learner),
        autoencoder=as_model(assignment.autoencoder),
        test_dataset=as_dataset(assignment.test_dataset),
        units=[UnitInput(**dict(unit)) for unit in assignment.units],
        resume=Path(assignment.resume) if assignment.resume else None,
        resume_seconds=assignment.resume_seconds,
        device=assignment.device,
        threads=assignment.threads,
    )


def as_model(staged: StagedModel | None) -> ModelInput | None:
    if staged is None:
        return None
    files = {name: path and Path(path) for name in ("path", "probe", "capsule") for path in [getattr(staged, name)]}
    return ModelInput(**{**dict(staged), **files})


def as_dataset(staged: StagedDataset | None) -> DatasetInput | None:
    return None if staged is None else DatasetInput(**{**dict(staged), "path": Path(staged.path)})


def as_cards(staged: StagedCards | None) -> CardsInput | None:
    return None if staged is None else CardsInput(path=Path(staged.path), digest=staged.digest)


def as_learner(staged: StagedLearner | None) -> LearnerInput | None:
    if staged is None:
        return None
    files = {name: path and Path(path) for name in ("state", "images") for path in [getattr(staged, name)]}
    return LearnerInput(**{**dict(staged), "tasks": [as_task(task) for task in staged.tasks], **files})


def as_task(staged: StagedTask) -> TaskInput:
    capsule = Path(staged.capsule) if staged.capsule else None
    return TaskInput(**{**dict(staged), "capsule": capsule, "test": as_dataset(staged.test)})


def as_files(products: list[Product]) -> list[FileMade]:
    return [FileMade(**asdict(product)) for product in products]


def work(assignment: Assignment, reports: Reports, stopping: threading.Event) -> Record:
    """Run the job and say how it ended. A defect of ours is left to the supervisor: it sees the exit code."""
    try:
        outcome: Outcome = engine_run.run(as_work(assignment), reports, stopping.is_set)
    except Stopped as stopped:
        return SaidStopped(files=as_files(stopped.products))
    except EngineError as error:
        failure = Failure(type=error.type, title=error.title, detail=error.detail)
        return SaidFailed(error=failure, files=as_files(error.products))
    reports.finish()
    return SaidDone(result=outcome.result.model_dump(mode="json"), files=as_files(outcome.products))


def live() -> None:
    """The life of one runner, from its birth to its last word."""
    line = Line()
    assignments = listen()
    stopping = threading.Event()
    text = assignments.get()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    assignment = Assignment.model_validate(json.loads(text))
    reports = Reports(line)
    line.say(work(assignment, reports, stopping))
    sys.stderr.flush()


def main() -> None:
    line = socket.socket(fileno=os.dup(0))
    warm_up()
    Nursery(line, live).serve()


if __name__ == "__main__":
    main()
