"""What is told of classes, as tables that a spreadsheet opens. A cell is empty where nothing says."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from engine.files import write_whole
from engine.work import Product
from flashcards.contract.class_results import EvaluateClassifierResult
from flashcards.contract.results import ClassAccuracy, TaskMeasure

CONFUSION, PER_CLASS, METRICS, MEASURES = (
    Product(f"{stem}.csv", "text/csv") for stem in ("confusion", "per_class", "metrics", "measures")
)
OF_A_MODEL = ("split", "images", "classes", "accuracy", "accuracy_given_head", "constant_accuracy", "log_loss", "ece")
OF_A_TASK = ("accuracy", "accuracy_without_task_id", "estimated_accuracy", "ece")
OF_A_CLASS = ("label", "name", "images", "accuracy")


def save_confusion_sheet(out: Path, confusion_KK: np.ndarray, words: Sequence[str]) -> Product:
    """A row a class, a column an answer."""
    rows = ([word, *counts] for word, counts in zip(words, confusion_KK.tolist(), strict=True))
    return _save(out, CONFUSION, ["class", *words], rows)


def save_metrics_sheets(out: Path, result: EvaluateClassifierResult) -> list[Product]:
    """Of a model: one row; and a row a class."""
    classes = (_cells(each, OF_A_CLASS) for each in result.per_class)
    return [
        _save(out, METRICS, OF_A_MODEL, [_cells(result, OF_A_MODEL)]),
        _save(out, PER_CLASS, OF_A_CLASS, classes),
    ]


def save_measures_sheets(out: Path, measures: Sequence[TaskMeasure]) -> list[Product]:
    """Of a learner: a row a task; and a row a class of each."""
    classes = ([each.task, *_cells(one, OF_A_CLASS)] for each in measures for one in each.per_class or ())
    return [
        _save(out, MEASURES, ["task", *OF_A_TASK], ([each.task, *_cells(each, OF_A_TASK)] for each in measures)),
        _save(out, PER_CLASS, ["task", *OF_A_CLASS], classes),
    ]


def _cells(told: EvaluateClassifierResult | TaskMeasure | ClassAccuracy, names: Sequence[str]) -> list[object]:
    values = [getattr(told, name) for name in names]
    return ["" if value is None else value for value in values]


def _save(out: Path, product: Product, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Product:
    text = io.StringIO()
    sheet = csv.writer(text)
    sheet.writerow(head)
    sheet.writerows(rows)
    write_whole(out / product.name, text.getvalue().encode())
    return product
