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
from dataclasses import asdict, replace
from pathlib import Path

from engine import run as engine_run
from engine.device import memory
from engine.errors import EngineError, Stopped
from engine.threads import worth
from engine.warm import warm_up
from engine.work import (
    CardsInput,
    DatasetInput,
    LearnerInput,
    ModelInput,
    Outcome,
    PartsInput,
    Product,
    TaskInput,
    UnitInput,
    Work,
)
from flashcards.contract.base import Record
from flashcards.contract.resources import Failure, Progress
from flashcards.contract.shards import Split
from worker.messages import (
    Assignment,
    DeviceMemory,
    Drawing,
    FileMade,
    SaidDone,
    SaidFailed,
    SaidNote,
    SaidProgress,
    SaidResumePoint,
    SaidSplit,
    SaidStopped,
    StagedCards,
    StagedDataset,
    StagedLearner,
    StagedModel,
    StagedParts,
    StagedTask,
)
from worker.nursery import Nursery
from worker.stages import Stages

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

    def __init__(self, line: Line, assignment: Assignment) -> None:
        self._line = line
        self._device = assignment.device
        self._stages = Stages(line.say) if assignment.traced else None
        self._said_at = 0.0
        self._metrics: list[tuple[int, dict[str, float]]] = []
        self._latest = Progress()

    def progress(self, progress: Progress) -> None:
        self._latest = progress
        if self._stages is not None:
            self._stages.heard(progress)
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
        self._line.say(SaidProgress(progress=self._latest, metrics=metrics, memory=self._memory()))

    def end_stages(self) -> None:
        if self._stages is not None:
            self._stages.finish()

    def _memory(self) -> DeviceMemory | None:
        found = memory(self._device)
        return None if found is None else DeviceMemory(device=self._device, used_bytes=found[0], total_bytes=found[1])


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
    work = Work(
        spec=assignment.spec,
        out=Path(assignment.out),
        model=as_model(assignment.model),
        dataset=as_dataset(assignment.dataset),
        cards=as_cards(assignment.cards),
        learner=as_learner(assignment.learner),
        autoencoder=as_model(assignment.autoencoder),
        test_dataset=as_dataset(assignment.test_dataset),
        units=[UnitInput(**dict(unit)) for unit in assignment.units],
        parts=as_parts(assignment.parts),
        shards=assignment.shards,
        resume=Path(assignment.resume) if assignment.resume else None,
        resume_seconds=assignment.resume_seconds,
        device=assignment.device,
        threads=assignment.threads,
    )
    return replace(work, threads=worth(work))


def as_model(staged: StagedModel | None) -> ModelInput | None:
    if staged is None:
        return None
    files = {name: path and Path(path) for name in ("path", "probe", "capsule") for path in [getattr(staged, name)]}
    return ModelInput(**{**dict(staged), **files})


def as_dataset(staged: StagedDataset | None) -> DatasetInput | None:
    return None if staged is None else DatasetInput(**{**dict(staged), "path": Path(staged.path)})


def as_cards(staged: StagedCards | None) -> CardsInput | None:
    return None if staged is None else CardsInput(path=Path(staged.path), digest=staged.digest)


def as_parts(staged: StagedParts | None) -> PartsInput | None:
    return None if staged is None else PartsInput(**{**dict(staged), "paths": [Path(path) for path in staged.paths]})


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
    finally:
        reports.end_stages()
    if isinstance(outcome.result, Split):
        return SaidSplit(split=outcome.result)
    reports.finish()
    return SaidDone(result=outcome.result.model_dump(mode="json"), files=as_files(outcome.products))


def draw(drawing: Drawing) -> Record:
    """For a tracking server: nobody waits for it, and it must not be in the way of a job."""
    from engine.export import ONNX, write_graph  # starts threads, and runners are forked from who imports this

    os.nice(19)
    model = as_model(drawing.draw)
    assert model is not None
    try:
        graph = write_graph(model, Path(drawing.out))
    except EngineError as error:
        return SaidFailed(error=Failure(type=error.type, title=error.title, detail=error.detail), files=[])
    return SaidDone(result={"max_abs_difference": graph.worst}, files=as_files([ONNX]))


def live() -> None:
    """The life of one runner, from its birth to its last word."""
    line = Line()
    assignments = listen()
    stopping = threading.Event()
    text = assignments.get()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    asked = json.loads(text)
    if "draw" in asked:
        line.say(draw(Drawing.model_validate(asked)))
    else:
        assignment = Assignment.model_validate(asked)
        line.say(work(assignment, Reports(line, assignment), stopping))
    sys.stderr.flush()


def main() -> None:
    line = socket.socket(fileno=os.dup(0))
    warm_up()
    Nursery(line, live).serve()


if __name__ == "__main__":
    main()
