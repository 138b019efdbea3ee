"""The matrix as a table that a spreadsheet opens."""

import csv
import io

from flashcards.contract.learners import Matrix


def as_csv(matrix: Matrix) -> str:
    """A row a version, a column a task, and in task_incremental one more a task; a cell is empty where nothing says."""
    text = io.StringIO()
    table = csv.writer(text)
    without = matrix.matrix_without_task_id
    more = [] if without is None else [f"{task}, without task id" for task in matrix.tasks]
    table.writerow(["version", "task", *matrix.tasks, *more])
    for place, (number, task) in enumerate(zip(matrix.versions, matrix.tasks, strict=True)):
        values = [*matrix.matrix[place], *([] if without is None else without[place])]
        table.writerow([number, task, *("" if value is None else value for value in values)])
    return text.getvalue()
