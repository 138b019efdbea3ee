"""The matrix as a table that a spreadsheet opens."""

import csv
import io

from flashcards.contract.learners import Matrix

MEANS = ("average", "average_without_task_id", "bwt", "forgetting", "fwt")
Value = float | None


def as_csv(matrix: Matrix) -> str:
    """A row a version, a column a task; a cell is empty where nothing says.

    Of classes there are more columns: without task id where heads are several, the calibration error of each task, and
    the means, which are those of the newest version and stand in its row.
    """
    squares: dict[str, list[list[Value]]] = {"": matrix.matrix}
    if matrix.matrix_without_task_id is not None:
        squares[", without task id"] = matrix.matrix_without_task_id
    means: tuple[str, ...] = ()
    if matrix.metric == "accuracy":
        squares[", ece"] = matrix.ece
        means = MEANS
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["version", "task", *(f"{task}{what}" for what in squares for task in matrix.tasks), *means])
    for place, (number, task) in enumerate(zip(matrix.versions, matrix.tasks, strict=True)):
        newest = place == len(matrix.versions) - 1
        values = [value for square in squares.values() for value in square[place]]
        values += [getattr(matrix, name) if newest else None for name in means]
        table.writerow([number, task, *("" if value is None else value for value in values)])
    return text.getvalue()
