"""The matrix as a table that a spreadsheet opens."""

import csv
import io

from flashcards.contract.learners import Matrix

EACH_TASK = ("estimated", "psnr", "ssim", "ece")  # squares like the matrix itself
AT_THE_END = ("average", "average_without_task_id", "bwt", "fwt", "forgetting", "seconds", "network_mb", "external_mb")
OF_CLASSES = ("average_without_task_id", "forgetting")
Cell = float | int | str | None


def as_csv(matrix: Matrix) -> str:
    """A row a version. First a column a task, then one a task for everything else that is measured of it; then what the
    task was like before it was learnt; and in the row of the newest version what is said of all tasks together. A cell
    is empty where nothing says."""
    text = io.StringIO()
    table = csv.writer(text)
    squares = _squares(matrix)
    end = [name for name in AT_THE_END if matrix.metric == "accuracy" or name not in OF_CLASSES]
    named = [f"{task}{suffix}" for suffix in squares for task in matrix.tasks]
    table.writerow(["version", "task", *named, "before", "random", *end])
    for place, (number, task) in enumerate(zip(matrix.versions, matrix.tasks, strict=True)):
        is_newest = place == len(matrix.versions) - 1
        cells: list[Cell] = [number, task, *(value for square in squares.values() for value in square[place])]
        cells += [matrix.before[place], matrix.random[place]]
        cells += [getattr(matrix, name) if is_newest else None for name in end]
        table.writerow(["" if cell is None else cell for cell in cells])
    return text.getvalue()


def _squares(matrix: Matrix) -> dict[str, list[list[float | None]]]:
    """By what stands behind the task in the name of the column; those that say nothing at all are left out."""
    found = {"": matrix.matrix}
    if matrix.matrix_without_task_id is not None:
        found[", without task id"] = matrix.matrix_without_task_id
    others = {f", {name}": getattr(matrix, name) for name in EACH_TASK}
    return found | {
        name: square for name, square in others.items() if any(v is not None for row in square for v in row)
    }
