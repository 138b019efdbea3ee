"""Figures of a learner of classes: its matrix, accuracy as the learner went on with and without task id, mistakes."""

from pathlib import Path

import numpy as np

from engine.class_plots import save_confusion
from engine.class_rows import Measured, together
from engine.learn_plots import LINES, filled, short
from engine.plots import DOTS, GREY, STYLE, as_png, drawing, save_figure
from engine.work import Product, Report
from flashcards.contract.results import TaskMeasure

WITH, WITHOUT = "accuracy", "accuracy_without_task_id"
Rows = list[list[TaskMeasure]]


def save_accuracies(out: Path, tasks: list[str], rows: Rows, title: str, multihead: bool) -> list[Product]:
    """M[i][j] as numbers on colours, with task id and, where there are several heads, without."""
    shown = {"with task id": filled(tasks, rows, WITH)} if multihead else {"": filled(tasks, rows, WITH)}
    if multihead:
        shown["without task id"] = filled(tasks, rows, WITHOUT)
    told = {"tasks": tasks, "metric": WITH, "matrix": filled(tasks, rows, WITH)}
    told |= {"matrix_without_task_id": filled(tasks, rows, WITHOUT)} if multihead else {}
    told |= {"estimated": filled(tasks, rows, "estimated_accuracy")}
    mpl, names = drawing(), [short(task) for task in tasks]
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        side = max(3.8, 1.0 * len(tasks) + 2.2)
        figure = mpl.Figure(figsize=(side * len(shown), side * 0.85), dpi=DOTS, layout="constrained")
        for axes, (words, matrix) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True):
            values = np.array([[np.nan if cell is None else cell for cell in row] for row in matrix], dtype=float)
            axes.imshow(np.ma.masked_invalid(values), cmap="viridis", vmin=0, vmax=1, aspect="equal")
            for i, j in np.argwhere(np.isfinite(values)):
                color = "black" if values[i, j] > 0.6 else "white"
                axes.text(j, i, f"{100 * values[i, j]:.1f}", ha="center", va="center", color=color)
            axes.set_xticks(range(len(tasks)), names, rotation=30, ha="right")
            axes.set_yticks(range(len(rows)), [f"after {name}" for name in names[len(tasks) - len(rows) :]])
            axes.set_title(words)
        figure.suptitle(f"{title}: % of answers that are right", x=0.01, ha="left", fontsize=10, color=GREY)
        picture = as_png(mpl, figure)
    return save_figure(out, "matrix", picture, told)


def save_curves(out: Path, tasks: list[str], rows: Rows, title: str, multihead: bool) -> list[Product]:
    """A curve a task; dashed, the same without task id."""
    matrices = {WITH: filled(tasks, rows, WITH)} | ({WITHOUT: filled(tasks, rows, WITHOUT)} if multihead else {})
    mpl = drawing()
    with mpl.rc_context(STYLE):
        figure = mpl.Figure(figsize=(8.5, 5.2), dpi=DOTS, layout="constrained")
        axes = figure.subplots()
        after = range(1, len(rows) + 1)
        for place, task in enumerate(tasks):
            looks = ({"marker": "o", "label": short(task)}, {"marker": "o", "linestyle": "--"})
            for matrix, look in zip(matrices.values(), looks, strict=False):
                values = [np.nan if row[place] is None else 100 * row[place] for row in matrix]
                axes.plot(after, values, color=LINES[place % len(LINES)], **look)
        axes.set_xticks(after, [f"after {short(task)}" for task in tasks[len(tasks) - len(rows) :]])
        axes.set_ylabel("% of answers that are right")
        axes.set_ylim(0, 102)
        axes.set_title(title)
        axes.spines["right"].set_visible(False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, fontsize=9.5)
        if multihead:
            words = "dashed: without task id"
            axes.text(1, 1.02, words, transform=axes.transAxes, ha="right", color=GREY, fontsize=9)
        picture = as_png(mpl, figure)
    told = {
        name: [{"task": t, "after": [row[j] for row in m]} for j, t in enumerate(tasks)] for name, m in matrices.items()
    }
    return save_figure(out, "forgetting", picture, {"tasks": tasks} | told)


def save_mistakes(
    out: Path, measured: list[Measured | None], names: list[str] | None, title: str, report: Report
) -> list[Product]:
    """What the images of all tasks that have some are answered with, nobody saying which task they are of."""
    return save_confusion(out, *together(measured), names, title, report)
