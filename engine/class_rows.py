"""A row of the matrix of a learner of classes: how many images of every task so far it answers rightly.

With the task's id the highest score among the classes of the task is the answer, without it the highest of all. Without
any image, from the two networks and cards of the task, each asked with the task's id:

    estimate = last estimate * share of cards that the new network answers as the old one did
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.class_data import ClassTest
from engine.class_measures import accuracy, calibration, scores
from engine.class_plots import per_class
from engine.evaluate_classifier import refuse_infinite
from engine.learn_measures import Forgetting
from flashcards.contract.results import TaskMeasure


@dataclass(frozen=True)
class Measured:
    row: TaskMeasure
    y_NK: np.ndarray  # scores of all classes
    labels_N: np.ndarray


def measure_classes(
    name: str,
    network: torch.nn.Module,
    test: ClassTest,
    multihead: bool,
    chunk: int,
    device: torch.device,
    between: Callable[[], None],
) -> Measured:
    y_NK = scores(network, test.images.images, test.images.rows, chunk, device, between)
    refuse_infinite(y_NK)
    place, labels_N = test.place, test.labels_N
    own_NC, own_N = y_NK[:, place.first : place.first + place.classes], labels_N - place.first
    named = None if test.names is None else test.names[place.lowest :]
    row = TaskMeasure(
        task=name,
        accuracy=accuracy(own_NC, own_N),
        accuracy_without_task_id=accuracy(y_NK, labels_N) if multihead else None,
        ece=calibration(own_NC, own_N)[0],
        per_class=[
            each.model_copy(update={"label": each.label + place.lowest}) for each in per_class(own_NC, own_N, named)
        ],
    )
    return Measured(row, y_NK, labels_N)


def together(measured: list[Measured | None]) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of all tasks that have images, as of one."""
    known = [each for each in measured if each is not None]
    return np.concatenate([each.y_NK for each in known]), np.concatenate([each.labels_N for each in known])


def known_accuracy(last: TaskMeasure) -> float | None:
    return last.accuracy if last.estimated_accuracy is None else last.estimated_accuracy


def estimate(last: TaskMeasure, agreement: float | None) -> float | None:
    known = known_accuracy(last)
    return None if known is None or agreement is None else known * agreement


def forgetting(earlier: list[TaskMeasure], row: list[TaskMeasure], agreements: list[float | None]) -> list[Forgetting]:
    """By the share of wrong answers: on images where both versions were measured on them, else on cards."""
    rises = []
    for before, after, agreement in zip(earlier, row, agreements, strict=False):
        if before.accuracy is not None and after.accuracy is not None:
            rises.append(Forgetting(before.task, before.accuracy - after.accuracy, 1 - before.accuracy, "images"))
        elif agreement is not None:
            known = known_accuracy(before)
            rises.append(Forgetting(before.task, 1 - agreement, None if known is None else 1 - known, "cards"))
    return rises
