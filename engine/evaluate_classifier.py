"""How well a classifier answers: accuracy, by class and by what it is mistaken for, log loss, and calibration."""

import json
import time
from collections.abc import Callable

import numpy as np
import torch

from engine.class_measures import (
    accuracy,
    accuracy_given_head,
    calibration,
    confusion,
    constant_accuracy,
    log_loss,
    scores,
)
from engine.class_plots import per_class, save_calibration, save_confusion
from engine.class_sheets import save_metrics_sheets
from engine.data import load_labels
from engine.errors import Diverged, Stopped
from engine.evaluate import METRICS, choose_images, tell
from engine.files import write_whole
from engine.models import chunk_size
from engine.probe import forward_unverified
from engine.weights import load_network
from engine.work import Outcome, Report, Work
from flashcards.contract.class_results import EvaluateClassifierResult

TOLD_CLASSES = 100  # up to which the matrix is part of the result


def evaluate_classifier(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    began = time.monotonic()
    model, device = work.model, torch.device(work.device)
    network, classes, names = load_network(model, device), model.architecture.classes, work.dataset.labels
    unverified = forward_unverified(network, model, device)
    split, images, rows = choose_images(work, report)
    labels_N = load_labels(work.dataset.path, "test" if split == "test" else "train", classes)[rows]
    chunk, done = chunk_size(model.architecture, model.input), 0

    def between() -> None:
        nonlocal done
        done = min(done + chunk, len(rows))
        tell(report, done, len(rows), time.monotonic() - began)
        if stop():
            raise Stopped(f"stopped after {done} of {len(rows)} images")

    y_NK = scores(network, images, rows, chunk, device, between)
    refuse_infinite(y_NK)
    ece, bins = calibration(y_NK, labels_N)
    heads = model.architecture.heads
    result = EvaluateClassifierResult(
        forward_unverified=unverified,
        split=split,
        images=len(rows),
        classes=classes,
        accuracy=accuracy(y_NK, labels_N),
        accuracy_given_head=accuracy_given_head(y_NK, labels_N, heads) if len(heads) > 1 else None,
        constant_accuracy=constant_accuracy(labels_N, labels_N),
        log_loss=log_loss(y_NK, labels_N),
        ece=ece,
        per_class=per_class(y_NK, labels_N, names),
        confusion=confusion(y_NK, labels_N).tolist() if classes <= TOLD_CLASSES else None,
        seconds=time.monotonic() - began,
    )
    measured = result.model_dump(exclude={"model", "dataset"})
    write_whole(work.out / METRICS.name, json.dumps(measured, indent=2).encode())
    title = f"{model.architecture.name}, {len(rows):,} images of {split}"
    pictures = save_confusion(work.out, y_NK, labels_N, names, title, report)
    pictures += save_calibration(work.out, ece, bins, title)
    return Outcome(result, [METRICS, *save_metrics_sheets(work.out, result), *pictures])


def refuse_infinite(y_NK: np.ndarray) -> None:
    infinite = int((~np.isfinite(y_NK)).any(1).sum())
    if infinite:
        raise Diverged(f"the network gives no finite answer to {infinite} of {len(y_NK)} images: look at its weights")
