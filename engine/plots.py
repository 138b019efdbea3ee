"""Figures for people, each as a PNG with the numbers it shows as JSON beside it.

matplotlib and scikit-learn are imported when the first figure is drawn: who draws none does not wait for them.
"""

import functools
import io
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from engine import pictures
from engine.files import write_whole
from engine.work import Product

# Okabe and Ito's palette, which people who see few colours can tell apart.
BLUE, SKY, ORANGE, VERMILLION, GREEN = "#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#009E73"
INK, GREY, FAINT = "#222222", "#666666", "#DDDDDD"
DOTS = 100  # an inch
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


@functools.cache
def drawing() -> SimpleNamespace:
    """Without pyplot, so without a figure that outlives its drawing."""
    # It keeps a list of fonts, in the user's home unless told otherwise. Once loaded it does not look there again.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MPLCONFIGDIR"] = folder
        try:
            from matplotlib import rc_context
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
            from matplotlib.ticker import MaxNLocator
        finally:
            del os.environ["MPLCONFIGDIR"]
    return SimpleNamespace(rc_context=rc_context, Canvas=FigureCanvasAgg, Figure=Figure, MaxNLocator=MaxNLocator)


def save_strip(
    out: Path, pixels: dict[int, np.ndarray], step_CN: list[list[float | None]], recommended_r: int, title: str
) -> list[Product]:
    """A row for each card, a column for each r: pixels[r] is x_NHWC."""
    shown = list(pixels)
    rows = [np.stack([pixels[r][card] for r in shown]) for card in range(len(pixels[shown[0]]))]
    grid = np.asarray(pictures.grid(rows))
    height, width = grid.shape[:2]
    above, beside = 76, 12  # room for the title and the labels, in pixels
    wide, high = max(width, 560) + 2 * beside, height + above + beside
    mpl = drawing()
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = mpl.Figure(figsize=(wide / DOTS, high / DOTS), dpi=DOTS)
        axes = figure.add_axes((beside / wide, beside / high, width / wide, height / high))
        # One pixel of the grid is one of the figure: nothing is smoothed.
        axes.imshow(grid, cmap="gray", vmin=0, vmax=255, interpolation="nearest", aspect="auto")
        column = (width - pictures.GAP) / len(shown)
        axes.set_xticks([pictures.GAP / 2 + column * (place + 0.5) for place in range(len(shown))])
        axes.set_xticklabels([f"r = {r}" if r == 0 else f"{r}" for r in shown])
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, left=False)
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        for r, label in zip(shown, axes.get_xticklabels(), strict=True):
            if r == recommended_r:
                label.set(color=GREEN, fontweight="bold")
        figure.text(beside / wide, 1 - 12 / high, title, va="top", fontsize=12)
        figure.text(
            beside / wide,
            1 - 32 / high,
            "cards after r passes; the recommended r is green",
            va="top",
            fontsize=9.5,
            color=GREY,
        )
        image = as_png(mpl, figure)
    told = {"cards": list(range(len(rows))), "r": shown, "recommended_r": recommended_r, "step": step_CN}
    return save_figure(out, "strip", image, told)


def save_curves(out: Path, result: dict[str, Any], title: str) -> list[Product]:
    """Figure 4 of the paper: steps and FLSD over the passes; and what networks learnt from cards of each r."""
    mpl = drawing()
    retrained = result["retrained"]
    with mpl.rc_context(STYLE):
        figure = mpl.Figure(figsize=(13.5 if retrained else 8.5, 5.4), dpi=DOTS, layout="constrained")
        panels = figure.subplots(1, 2 if retrained else 1, squeeze=False, width_ratios=[1.7, 1] if retrained else [1])
        figure.suptitle(title, x=0.012, ha="left", fontsize=13)
        _steps(mpl, panels[0, 0], result)
        if retrained:
            _retrained(mpl, panels[0, 1], result)
        image = as_png(mpl, figure)
    return save_figure(out, "curves", image, result)


def _steps(mpl: SimpleNamespace, axes: Any, result: dict[str, Any]) -> None:
    passes = np.arange(1, len(result["mean_step"]) + 1)
    lines = [
        *axes.plot(passes, result["gamma2"], color=BLUE, linestyle="--", label="largest step, γ₂"),
        *axes.plot(passes, result["mean_step"], color=BLUE, label="mean step"),
    ]
    # A card that a pass leaves as it is has no place on a logarithmic scale.
    if max(result["gamma2"]) > 0:
        axes.set_yscale("log", nonpositive="mask")
    if result["eps1"] is not None:
        label = "smallest error on real images, ε₁"
        lines.append(axes.axhline(result["eps1"], color=VERMILLION, linestyle=":", label=label))
    if result["reference_mae"] is not None:
        label = "the model's own test MAE"
        lines.append(axes.axhline(result["reference_mae"], color=SKY, linewidth=1.4, label=label))
    axes.set_xlabel("passes, r")
    axes.set_ylabel("mean absolute error of a step", color=BLUE)
    axes.set_xlim(0, len(passes))
    axes.xaxis.set_major_locator(mpl.MaxNLocator(integer=True))
    if result["flsd"] is not None:
        other = axes.twinx()
        other.grid(visible=False)
        lines += other.plot(range(len(result["flsd"])), result["flsd"], color=ORANGE, label="FLSD (right)")
        other.set_ylabel(f"FLSD against the {result['against']}", color=ORANGE)
        other.set_ylim(bottom=0)
    _mark(axes, result)
    axes.legend(handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, fontsize=9.5)


def _mark(axes: Any, result: dict[str, Any]) -> None:
    """A line at each r that has a name; names of neighbours stand above each other."""
    names: dict[int, list[str]] = {}
    for name, r in (("P1", result["p1_from"]), ("P2", result["p2_at"]), ("recommended", result["recommended_r"])):
        if r is not None:
            names.setdefault(r, []).append(name)
    last = len(result["gamma2"])
    for level, (r, called) in enumerate(sorted(names.items())):
        recommended = "recommended" in called
        color = GREEN if recommended else GREY
        axes.axvline(r, color=color, linewidth=1.6 if recommended else 1.1, alpha=0.8)
        axes.text(
            r,
            1.015 + 0.045 * level,
            f"r = {r}: {', '.join(called)}",
            color=color,
            fontsize=9.5,
            ha="left" if r < 0.7 * last else "right",
            transform=axes.get_xaxis_transform(),
            fontweight="bold" if recommended else "normal",
        )


def _retrained(mpl: SimpleNamespace, axes: Any, result: dict[str, Any]) -> None:
    learnt = sorted(result["retrained"].items())
    axes.plot(*zip(*learnt, strict=True), color=BLUE, marker="o", label="networks taught by cards of r alone")
    axes.axhline(result["reference_mae"], color=SKY, linewidth=1.4, label="the model itself")
    axes.axvline(result["recommended_r"], color=GREEN, linewidth=1.6, alpha=0.8, label="recommended r")
    axes.spines["right"].set_visible(False)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("passes, r")
    axes.set_ylabel("test MAE")
    axes.xaxis.set_major_locator(mpl.MaxNLocator(integer=True))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=9.5)


def save_latents(out: Path, groups: dict[str, np.ndarray], threads: int, title: str) -> list[Product] | None:
    """t-SNE of z_ND of every group together, the reference first. None where all latents are one and the same."""
    z_ND = np.concatenate(list(groups.values()))
    if not np.ptp(z_ND, axis=0).any():
        return None
    places = np.split(_embed(z_ND, threads), np.cumsum([len(z) for z in groups.values()])[:-1])
    mpl = drawing()
    with mpl.rc_context(STYLE | {"axes.grid": False, "axes.spines.right": False}):
        figure = mpl.Figure(figsize=(7.2, 7.2), dpi=DOTS, layout="constrained")
        axes = figure.subplots()
        looks = zip(("#999999", VERMILLION, GREEN, BLUE), ("o", "^", "s", "D"), strict=True)
        for (name, xy), (color, marker) in zip(zip(groups, places, strict=True), looks, strict=False):
            axes.scatter(*xy.T, s=20, color=color, marker=marker, alpha=0.65, linewidths=0, label=name)
        axes.set_title(title, pad=12)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlabel("t-SNE of the latents: neighbours are alike, axes have no unit", fontsize=9.5, color=GREY)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=2, fontsize=10, markerscale=1.5)
        image = as_png(mpl, figure)
    told = {name: np.round(xy, 4).tolist() for name, xy in zip(groups, places, strict=True)}
    return save_figure(out, "latents", image, told)


def _embed(z_ND: np.ndarray, threads: int) -> np.ndarray:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    # A common factor changes nothing but the rounding: latents of a relu network may be of any size.
    z_ND = ((z_ND - z_ND.mean(0)) / np.abs(z_ND - z_ND.mean(0)).max()).astype(np.float32)
    perplexity = min(30.0, (len(z_ND) - 1) / 3)
    start = "pca" if z_ND.shape[1] > 1 else "random"
    with threadpool_limits(threads):
        return TSNE(perplexity=perplexity, init=start, random_state=0).fit_transform(z_ND)


def as_png(mpl: SimpleNamespace, figure: Any) -> bytes:
    buffer = io.BytesIO()
    mpl.Canvas(figure).print_png(buffer)
    return buffer.getvalue()


def save_figure(out: Path, stem: str, image: bytes, told: dict[str, Any]) -> list[Product]:
    products = [Product(f"{stem}.png", "image/png"), Product(f"{stem}.json", "application/json")]
    data: Sequence[bytes] = (image, json.dumps(told, indent=2).encode())
    for product, content in zip(products, data, strict=True):
        write_whole(out / product.name, content)
    return products
