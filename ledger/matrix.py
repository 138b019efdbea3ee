"""What a learner knows of each task after each task, along the versions that led to its head."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from flashcards.contract.learners import Matrix
from flashcards.contract.results import Memory, TaskMeasure
from flashcards.contract.specs import CLASSIFY
from ledger.tables import Learner, Version

Value = float | None
Square = list[list[Value]]


def assemble(learner: Learner, versions: Sequence[Version]) -> Matrix:
    """Means are given where every value that they are made of is known."""
    rows = [[TaskMeasure.model_validate(each) for each in version.measures] for version in versions]
    figures = _of_classes(learner, rows, versions) if learner.scenario in CLASSIFY else _of_images(rows, versions)
    memory = Memory.model_validate(versions[-1].memory) if versions else None
    seconds = [version.seconds for version in versions if version.seconds is not None]
    return Matrix(
        learner=learner.id,
        version=learner.version,
        tasks=[version.task for version in versions],
        versions=[version.number for version in versions],
        psnr=_square(rows, lambda measure: measure.psnr),
        ssim=_square(rows, lambda measure: measure.ssim),
        memory=memory,
        network_mb=memory and memory.network_mb,
        external_mb=memory and memory.external_mb,
        seconds=sum(seconds) if seconds else None,
        **figures,
    )


def _of_images(rows: list[list[TaskMeasure]], versions: Sequence[Version]) -> dict[str, Any]:
    """Errors: the smaller the better."""
    matrix = _square(rows, lambda measure: measure.mae)
    random, before = [version.random_mae for version in versions], _before(versions, "mae")
    return {
        "matrix": matrix,
        "estimated": _square(rows, lambda measure: measure.estimated_mae),
        "average": _mean(_last(matrix)),
        "bwt": _mean([_less(matrix[i][i], matrix[-1][i]) for i in range(len(matrix) - 1)]),
        "fwt": _mean([_less(random[i], before[i]) for i in range(1, len(matrix))]),
        "random": random,
        "before": before,
    }


def _of_classes(learner: Learner, rows: list[list[TaskMeasure]], versions: Sequence[Version]) -> dict[str, Any]:
    """Accuracies: the larger the better, so that below zero still means that it forgot."""
    matrix = _square(rows, lambda measure: measure.accuracy)
    random, before = [version.random_accuracy for version in versions], _before(versions, "accuracy")
    figures: dict[str, Any] = {
        "metric": "accuracy",
        "matrix": matrix,
        "estimated": _square(rows, lambda measure: measure.estimated_accuracy),
        "ece": _square(rows, lambda measure: measure.ece),
        "average": _mean(_last(matrix)),
        "bwt": _mean([_less(matrix[-1][i], matrix[i][i]) for i in range(len(matrix) - 1)]),
        "fwt": _mean([_less(before[i], random[i]) for i in range(1, len(matrix))]),
        "forgetting": _mean([_fall(matrix, i) for i in range(len(matrix) - 1)]),
        "random": random,
        "before": before,
    }
    if learner.scenario == "task_incremental":
        without = _square(rows, lambda measure: measure.accuracy_without_task_id)
        figures |= {"matrix_without_task_id": without, "average_without_task_id": _mean(_last(without))}
    return figures


def _fall(matrix: Square, task: int) -> Value:
    """From the best that the task ever was before the last one was learnt."""
    earlier = [row[task] for row in matrix[task:-1]]
    known = [value for value in earlier if value is not None]
    return _less(max(known), matrix[-1][task]) if known and len(known) == len(earlier) else None


def _before(versions: Sequence[Version], field: str) -> list[Value]:
    return [version.before[field] if version.before else None for version in versions]


def _last(matrix: Square) -> list[Value]:
    return matrix[-1] if matrix else []


def _square(rows: list[list[TaskMeasure]], value: Callable[[TaskMeasure], Value]) -> Square:
    """A task that was not learnt yet has no value."""
    return [[value(measure) for measure in row] + [None] * (len(rows) - len(row)) for row in rows]


def _less(one: Value, other: Value) -> Value:
    return None if one is None or other is None else one - other


def _mean(values: Sequence[Value]) -> Value:
    known = [value for value in values if value is not None]
    return fmean(known) if values and len(known) == len(values) else None
