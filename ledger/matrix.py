"""What a learner knows of each task after each task, along the versions that led to its head."""

from collections.abc import Callable, Sequence
from statistics import fmean

from flashcards.contract.learners import Matrix
from flashcards.contract.results import TaskMeasure
from ledger.tables import Learner, Version

Value = float | None


def assemble(learner: Learner, versions: Sequence[Version]) -> Matrix:
    """Means are given where every value that they are made of is known."""
    rows = [[TaskMeasure.model_validate(each) for each in version.measures] for version in versions]
    matrix = _square(rows, lambda measure: measure.mae)
    random = [version.random_mae for version in versions]
    before: list[Value] = [version.before["mae"] if version.before else None for version in versions]
    seconds = [version.seconds for version in versions if version.seconds is not None]
    last = matrix[-1] if matrix else []
    return Matrix(
        learner=learner.id,
        version=learner.version,
        tasks=[version.task for version in versions],
        versions=[version.number for version in versions],
        matrix=matrix,
        estimated=_square(rows, lambda measure: measure.estimated_mae),
        psnr=_square(rows, lambda measure: measure.psnr),
        ssim=_square(rows, lambda measure: measure.ssim),
        average=_mean(last),
        bwt=_mean([_less(matrix[i][i], last[i]) for i in range(len(matrix) - 1)]),
        fwt=_mean([_less(random[i], before[i]) for i in range(1, len(matrix))]),
        random=random,
        before=before,
        memory=versions[-1].memory if versions else None,
        seconds=sum(seconds) if seconds else None,
    )


def _square(rows: list[list[TaskMeasure]], value: Callable[[TaskMeasure], Value]) -> list[list[Value]]:
    """A task that was not learnt yet has no value."""
    return [[value(measure) for measure in row] + [None] * (len(rows) - len(row)) for row in rows]


def _less(one: Value, other: Value) -> Value:
    return None if one is None or other is None else one - other


def _mean(values: Sequence[Value]) -> Value:
    known = [value for value in values if value is not None]
    return fmean(known) if values and len(known) == len(values) else None
