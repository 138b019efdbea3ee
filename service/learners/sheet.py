"""The matrix as a table that a spreadsheet opens."""

import csv
import io

from flashcards.contract.learners import Matrix


def as_csv(matrix: Matrix) -> str:
    """A row a version, a column a task; a cell is empty where nothing says."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["version", "task", *matrix.tasks])
    for number, task, row in zip(matrix.versions, matrix.tasks, matrix.matrix, strict=True):
        table.writerow([number, task, *("" if value is None else value for value in row)])
    return text.getvalue()
