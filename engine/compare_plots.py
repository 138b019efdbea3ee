"""Figures of a comparison: errors and forgetting of all strategies, and the matrix of each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.files import write_whole
from engine.learn_plots import LINES, LONGEST
from engine.plots import DOTS, GREY, STYLE, as_png, drawing
from engine.work import Product, UnitInput
from flashcards.contract.results import CompareResult

COMPARISON, MATRICES = Product("comparison.png", "image/png"), Product("matrices.png", "image/png")
ACROSS = 3  # matrices in a row of the page
LONGEST_LABEL = 36  # letters of a strategy's
NAMED_UP_TO = 8  # tasks; more of them are numbered


def save(out: Path, result: CompareResult, units: list[list[UnitInput]], title: str) -> list[Product]:
    """`units` are those that came to their end, by strategy."""
    matrices_STT = [_matrices(each) for each in units]
    write_whole(out / COMPARISON.name, _comparison(result, matrices_STT, title))
    write_whole(out / MATRICES.name, _pages(result, matrices_STT, title))
    return [COMPARISON, MATRICES]


def rise(matrices_STT: np.ndarray) -> np.ndarray:
    """After task t, how much the tasks before it have moved since they were learnt: one curve a seed.

    mean over j < t of M[t][j] - M[j][j]; at the last task that is -BWT of errors, and BWT of accuracies.
    """
    tasks = matrices_STT.shape[-1]
    learnt_ST = np.diagonal(matrices_STT, axis1=1, axis2=2)
    later = [(matrices_STT[:, t, :t] - learnt_ST[:, :t]).mean(axis=1) for t in range(1, tasks)]
    return np.stack([np.zeros(len(matrices_STT)), *later], axis=1)


def _matrices(units: Sequence[UnitInput]) -> np.ndarray:
    """S x T x T, a seed a matrix; what nobody knows is not a number."""
    return np.array([unit.matrix.matrix for unit in units], dtype=np.float64)


def _comparison(result: CompareResult, matrices: list[np.ndarray], title: str) -> bytes:
    mpl, rows = drawing(), result.table
    with mpl.rc_context(STYLE):
        high = max(4.6, 0.42 * len(rows) + 2.4)
        figure = mpl.Figure(figsize=(13.5, high), dpi=DOTS, layout="constrained")
        bars, curves = figure.subplots(1, 2)
        _draw_bars(bars, result)
        for place, (row, matrices_STT) in enumerate(zip(rows, matrices, strict=True)):
            if len(matrices_STT) == 0:
                continue
            color, after = LINES[place % len(LINES)], range(1, matrices_STT.shape[-1] + 1)
            rise_ST = rise(matrices_STT)
            mean_T = rise_ST.mean(axis=0)
            dashes = ("-", "--", ":")[place // len(LINES) % 3]
            curves.plot(
                after, mean_T, marker="o", color=color, linestyle=dashes, label=_short(row.label, LONGEST_LABEL)
            )
            if len(rise_ST) > 1:
                deviation_T = rise_ST.std(axis=0, ddof=1)
                curves.fill_between(after, mean_T - deviation_T, mean_T + deviation_T, color=color, alpha=0.15, lw=0)
        curves.axhline(0, color=GREY, linewidth=0.8)
        curves.set_xticks(range(1, len(result.tasks) + 1), _names(result.tasks, "after "), rotation=30, ha="right")
        of_errors = "MAE above what it was when learnt"
        curves.set_ylabel(of_errors if result.metric == "mae" else "accuracy less what it was when learnt")
        curves.set_title("Forgetting of the earlier tasks")
        curves.spines["right"].set_visible(False)
        curves.legend(fontsize=9.5)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, color=GREY)
        return as_png(mpl, figure)


def _draw_bars(axes: Any, result: CompareResult) -> None:
    for place, row in enumerate(result.table):
        if row.average is None:
            axes.text(0, place, " failed" if row.failed else " not measured", va="center", color=GREY)
            continue
        whisker = row.average.deviation or 0.0
        axes.barh(place, row.average.mean, xerr=whisker, color=LINES[place % len(LINES)], capsize=4)
        if row.average_without_task_id is not None:
            told = row.average_without_task_id
            axes.barh(place, told.mean, 0.4, xerr=told.deviation or 0.0, color="white", alpha=0.6, capsize=3)
        axes.text(row.average.mean + whisker, place, f"  {row.average.mean:.4f}", va="center", fontsize=9.5)
    axes.set_yticks(
        range(len(result.table)),
        [_short(row.label, LONGEST_LABEL) + (" *" if row.keeps_data else "") for row in result.table],
    )
    axes.invert_yaxis()
    axes.margins(x=0.18)
    axes.set_xlim(left=0)
    axes.grid(axis="y", visible=False)
    words = {"mae": "AvgMAE after the last task", "accuracy": "accuracy after the last task; pale: without task id"}
    axes.set_xlabel(words[result.metric])
    axes.set_title(
        ("Error" if result.metric == "mae" else "Accuracy")
        + ("   (* keeps images)" if any(row.keeps_data for row in result.table) else "")
    )
    axes.spines["right"].set_visible(False)


def _pages(result: CompareResult, matrices: list[np.ndarray], title: str) -> bytes:
    """The mean over the seeds, on one scale for all strategies."""
    shown = [
        (row, matrices_STT.mean(axis=0))
        for row, matrices_STT in zip(result.table, matrices, strict=True)
        if len(matrices_STT)
    ]
    known = np.concatenate([mean_TT[np.isfinite(mean_TT)] for _, mean_TT in shown])
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    mpl, tasks = drawing(), len(result.tasks)
    colors = "viridis_r" if result.metric == "mae" else "viridis"  # dark is bad
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        columns = min(ACROSS, len(shown))
        lines = -(-len(shown) // columns)
        side = max(3.4, 0.62 * min(tasks, 12) + 1.6)
        figure = mpl.Figure(figsize=(side * columns + 1, side * lines + 0.5), dpi=DOTS, layout="constrained")
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
        for axes, (row, mean_TT) in zip(grid, shown, strict=False):
            image = axes.imshow(np.ma.masked_invalid(mean_TT), cmap=colors, vmin=low, vmax=high)
            for i, j in np.argwhere(np.isfinite(mean_TT)) if tasks <= NAMED_UP_TO else ():
                color = "white" if (mean_TT[i, j] > (low + high) / 2) == (colors == "viridis_r") else "black"
                axes.text(j, i, f"{mean_TT[i, j]:.3f}", ha="center", va="center", fontsize=8.5, color=color)
            axes.set_xticks(range(tasks), _names(result.tasks), rotation=30, ha="right", fontsize=8.5)
            axes.set_yticks(range(tasks), _names(result.tasks, "after "), fontsize=8.5)
            axes.set_title(_short(row.label, LONGEST_LABEL))
        figure.colorbar(image, ax=list(grid), label={"mae": "MAE"}.get(result.metric, result.metric), shrink=0.8)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, color=GREY)
        return as_png(mpl, figure)


def _names(tasks: Sequence[str], before: str = "") -> list[str]:
    if len(tasks) > NAMED_UP_TO:
        return [f"{before}{number}" for number in range(1, len(tasks) + 1)]
    return [f"{before}{_short(task)}" for task in tasks]


def _short(name: str, most: int = LONGEST) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
