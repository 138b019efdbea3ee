"""Accuracies of a comparison of classes: by task with and without task id, or by session."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.files import write_whole
from engine.learn_plots import LINES, short
from engine.plots import DOTS, GREY, STYLE, as_png, drawing
from engine.work import Product, UnitInput

ACCURACIES = Product("accuracies.png", "image/png")
DASHES = ("-", "--", ":")
LONGEST_LABEL = 36


def save_accuracies(
    out: Path, labels: Sequence[str], tasks: Sequence[str], units: Sequence[Sequence[UnitInput]], title: str
) -> list[Product]:
    """`units` are those that came to their end, by strategy."""
    multihead = any(unit.matrix.matrix_without_task_id is not None for each in units for unit in each)
    mpl = drawing()
    with mpl.rc_context(STYLE):
        figure = (_by_task if multihead else _by_session)(mpl, [_cut(label) for label in labels], tasks, units)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, color=GREY)
        write_whole(out / ACCURACIES.name, as_png(mpl, figure))
    return [ACCURACIES]


def last_rows(units: Sequence[UnitInput], field: str) -> np.ndarray:
    """S x T, in percent: after the last task, a seed a row; not a number where nothing says."""
    rows = [getattr(unit.matrix, field)[-1] for unit in units]
    return 100 * np.array([[np.nan if cell is None else cell for cell in row] for row in rows], dtype=np.float64)


def by_session(units: Sequence[UnitInput]) -> np.ndarray:
    """S x T, in percent: each session measured when it was learnt; where tests stay, accuracy as sessions went on."""
    cells = [[row[place] for place, row in enumerate(unit.matrix.matrix)] for unit in units]
    return 100 * np.array([[np.nan if cell is None else cell for cell in row] for row in cells], dtype=np.float64)


def _by_task(mpl: Any, labels: Sequence[str], tasks: Sequence[str], units: Sequence[Sequence[UnitInput]]) -> Any:
    """A group of bars a strategy, a bar a task."""
    thick = 0.8 / len(tasks)
    figure = mpl.Figure(figsize=(13.5, max(4.6, 0.26 * len(tasks) * len(labels) + 1.8)), dpi=DOTS, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    fields = {"with task id": "matrix", "without task id": "matrix_without_task_id"}
    for axes, (words, field) in zip(panels, fields.items(), strict=True):
        for place, mine in enumerate(units):
            for task, (mean, deviation) in enumerate(_spreads(last_rows(mine, field))):
                where, color = place + (task - (len(tasks) - 1) / 2) * thick, LINES[task % len(LINES)]
                name = short(tasks[task]) if place == 0 else None
                axes.barh(where, mean, thick, xerr=deviation, color=color, label=name, capsize=2)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_xlim(0, 102)
        axes.set_xlabel("% of answers that are right, after the last task")
        axes.set_title(words)
        axes.grid(axis="y", visible=False)
        axes.spines["right"].set_visible(False)
    panels[0].invert_yaxis()
    # Beside the title: bars may fill the whole of a panel.
    handles = panels[1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper right", ncols=min(len(tasks), 5), fontsize=9.5)
    return figure


def _by_session(mpl: Any, labels: Sequence[str], tasks: Sequence[str], units: Sequence[Sequence[UnitInput]]) -> Any:
    """A curve a strategy."""
    figure = mpl.Figure(figsize=(8.5, 5.6), dpi=DOTS, layout="constrained")
    axes, after = figure.subplots(), range(1, len(tasks) + 1)
    for place, (label, mine) in enumerate(zip(labels, units, strict=True)):
        if not mine:
            continue
        mean_T, deviation_T = np.array(_spreads(by_session(mine))).T
        color, dashes = LINES[place % len(LINES)], DASHES[place // len(LINES) % len(DASHES)]
        axes.plot(after, mean_T, marker="o", color=color, linestyle=dashes, label=label)
        axes.fill_between(after, mean_T - deviation_T, mean_T + deviation_T, color=color, alpha=0.15, lw=0)
    axes.set_xticks(after, [f"after {short(task)}" for task in tasks], rotation=30, ha="right")
    axes.set_ylabel("% of answers that are right")
    axes.set_title("Accuracy by session")
    axes.spines["right"].set_visible(False)
    axes.legend(fontsize=9.5)
    return figure


def _spreads(values_ST: np.ndarray) -> list[tuple[float, float]]:
    """Mean and deviation over the seeds, of each task."""
    if not len(values_ST):
        return []
    deviation_T = values_ST.std(axis=0, ddof=1) if len(values_ST) > 1 else np.zeros(values_ST.shape[1])
    return list(zip(values_ST.mean(axis=0).tolist(), deviation_T.tolist(), strict=True))


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"
