"""Figures of a learner: its matrix as a heat map, and the error on each task as the learner went on."""

from pathlib import Path
from typing import Any

import numpy as np

from engine.plots import BLUE, DOTS, GREEN, GREY, ORANGE, SKY, STYLE, VERMILLION, as_png, drawing, save_figure
from engine.work import Product
from flashcards.contract.results import TaskMeasure

LINES = (BLUE, VERMILLION, GREEN, ORANGE, SKY, "#CC79A7", "#000000")
MARKERS = "os^D"  # of the tasks that have the same colour
LONGEST = 24  # letters of a task's name
A_LINE = 80  # letters beside each other under a figure


def save_matrix(out: Path, tasks: list[str], rows: list[list[TaskMeasure]], title: str) -> list[Product]:
    """M[i][j], the error on task j after task i. What no test image says is shown in brackets, as estimated."""
    told = {"tasks": tasks, "metric": "mae", "matrix": filled(tasks, rows, "mae")}
    told["estimated"] = filled(tasks, rows, "estimated_mae")
    mpl, names = drawing(), [short(task) for task in tasks]
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        size = max(4.2, 1.1 * len(tasks) + 2.6)
        figure = mpl.Figure(figsize=(size, size * 0.85), dpi=DOTS, layout="constrained")
        axes = figure.subplots()
        shown = np.array(
            [
                [np.nan if cell is None else cell for cell in map(_either, *pair)]
                for pair in zip(told["matrix"], told["estimated"], strict=True)
            ]
        )
        image = axes.imshow(np.ma.masked_invalid(shown), cmap="viridis_r", aspect="equal")
        middle = (np.nanmin(shown) + np.nanmax(shown)) / 2 if np.isfinite(shown).any() else 0.0
        for i, j in np.argwhere(np.isfinite(shown)):
            measured = told["matrix"][i][j] is not None
            text = f"{shown[i, j]:.4f}" if measured else f"({shown[i, j]:.4f})"
            axes.text(j, i, text, ha="center", va="center", color="white" if shown[i, j] > middle else "black")
        axes.set_xticks(range(len(tasks)), names, rotation=30, ha="right")
        axes.set_yticks(range(len(rows)), [f"after {name}" for name in names[len(tasks) - len(rows) :]])
        axes.set_xlabel("error on")
        axes.set_title(title)
        figure.colorbar(image, ax=axes, label="MAE")
        picture = as_png(mpl, figure)
    return save_figure(out, "matrix", picture, told)


def save_forgetting(out: Path, tasks: list[str], rows: list[list[TaskMeasure]], title: str) -> list[Product]:
    """A curve a task: measured where there are images, and dashed what cards let expect."""
    measured, estimated = filled(tasks, rows, "mae"), filled(tasks, rows, "estimated_mae")
    mpl = drawing()
    with mpl.rc_context(STYLE):
        figure = mpl.Figure(figsize=(8.5, 5.2), dpi=DOTS, layout="constrained")
        axes = figure.subplots()
        after = range(1, len(rows) + 1)
        for place, task in enumerate(tasks):
            again, line = divmod(place, len(LINES))
            color, solid = LINES[line], {"marker": MARKERS[again % len(MARKERS)], "label": short(task)}
            for matrix, look in ((measured, solid), (estimated, {"linestyle": "--"})):
                axes.plot(after, [np.nan if row[place] is None else row[place] for row in matrix], color=color, **look)
        names = [f"after {short(task)}" for task in tasks[len(tasks) - len(rows) :]]
        axes.set_xticks(after, names, **({} if len("".join(names)) < A_LINE else {"rotation": 30, "ha": "right"}))
        axes.set_ylabel("MAE on the task")
        axes.set_ylim(bottom=0)
        axes.set_title(title)
        axes.spines["right"].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4, fontsize=9.5)
        axes.text(1, 1.02, "dashed: estimated from cards", transform=axes.transAxes, ha="right", color=GREY, fontsize=9)
        picture = as_png(mpl, figure)
    told = {"tasks": tasks, "mae": _by_task(tasks, measured), "estimated_mae": _by_task(tasks, estimated)}
    return save_figure(out, "forgetting", picture, told)


def filled(tasks: list[str], rows: list[list[TaskMeasure]], field: str) -> list[list[float | None]]:
    """Rows of equal length: of tasks yet to come nothing is known."""
    return [[*(getattr(each, field) for each in row), *[None] * (len(tasks) - len(row))] for row in rows]


def _by_task(tasks: list[str], matrix: list[list[float | None]]) -> list[dict[str, Any]]:
    return [{"task": task, "after": [row[place] for row in matrix]} for place, task in enumerate(tasks)]


def _either(measured: float | None, estimated: float | None) -> float | None:
    return estimated if measured is None else measured


def short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
