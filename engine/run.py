"""One piece of work, from spec to outcome. Every failure that has a remedy leaves here as an EngineError."""

import errno
from collections.abc import Callable

import torch
from threadpoolctl import threadpool_limits

from engine.analyze import analyze
from engine.capture import capture
from engine.compare import compare
from engine.device import prepare
from engine.distill import distill
from engine.errors import DiskFull, OutOfMemory
from engine.evaluate import evaluate
from engine.evaluate_cards import evaluate_cards
from engine.evaluate_classifier import evaluate_classifier
from engine.join import join
from engine.learn import learn
from engine.predict import predict
from engine.shard import shard
from engine.train import train
from engine.train_classifier import train_classifier
from engine.work import Outcome, Report, Work

KINDS = {
    "train": train,
    "capture": capture,
    "shard": shard,
    "analyze": analyze,
    "distill": distill,
    "learn": learn,
    "evaluate": evaluate,
    "predict": predict,
    "compare": compare,
}


def run(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    prepare(work.device, work.threads)
    try:
        # numpy's own threads would spin beside torch's, and where cores are shared a small matrix then takes seconds.
        with threadpool_limits(1, user_api="blas"):
            return _doer(work)(work, report, stop)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFull(
            "the worker's disk has no room left for what this job makes; free some space or ask for fewer cards, "
            "then retry"
        ) from error
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        raise OutOfMemory(
            f"the images and the network do not fit into the memory of {work.device}; take a smaller batch_size or "
            "a smaller architecture"
        ) from error


def _doer(work: Work) -> Callable[[Work, Report, Callable[[], bool]], Outcome]:
    if work.parts is not None:
        return join
    if work.spec.kind == "evaluate" and work.spec.flashcards is not None:
        return evaluate_cards
    if work.spec.kind == "evaluate" and work.model.architecture.task == "classify":
        return evaluate_classifier
    if work.spec.kind == "train" and work.spec.architecture.task == "classify":
        return train_classifier
    if work.spec.kind == "export":
        from engine.export import export  # ONNX Runtime starts threads, and runners are forked from whoever imports us

        return export
    return KINDS[work.spec.kind]


def _out_of_memory(error: Exception) -> bool:
    # The CPU allocator raises a bare RuntimeError: its message is the only sign.
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
