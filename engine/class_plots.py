"""What a classifier mistakes for what, and how sure it is of it: as records and as figures."""

from pathlib import Path
from typing import Any

import numpy as np

from engine.class_measures import confusion
from engine.class_sheets import save_confusion_sheet
from engine.learn_plots import short
from engine.plots import BLUE, DOTS, GREY, STYLE, as_png, drawing, save_figure
from engine.work import Product, Report
from flashcards.contract.results import ClassAccuracy

MOST_CLASSES = 1000  # of a matrix: a file of some MB, a picture of a pixel a cell
NUMBERED, NAMED = 20, 40  # classes up to which a cell has its number, and an axis its names


def per_class(y_NK: np.ndarray, labels_N: np.ndarray, names: list[str] | None) -> list[ClassAccuracy]:
    """Of the classes that there are images of."""
    images_K = np.bincount(labels_N)
    right_K = np.bincount(labels_N[y_NK.argmax(1) == labels_N], minlength=len(images_K))
    return [
        ClassAccuracy(
            label=int(label),
            name=called(names, label),
            images=int(images_K[label]),
            accuracy=float(right_K[label] / images_K[label]),
        )
        for label in np.flatnonzero(images_K)
    ]


def called(names: list[str] | None, label: int) -> str | None:
    return names[label] if names is not None and label < len(names) else None


def save_confusion(
    out: Path, y_NK: np.ndarray, labels_N: np.ndarray, names: list[str] | None, title: str, report: Report
) -> list[Product]:
    """A row a class, a column an answer; coloured by the share of the row, numbered by images."""
    classes = y_NK.shape[1]
    if classes > MOST_CLASSES:
        report.note(f"no matrix is drawn of {classes:,} classes: {MOST_CLASSES:,} are the most")
        return []
    confusion_KK = confusion(y_NK, labels_N)
    shares = confusion_KK / np.maximum(confusion_KK.sum(1, keepdims=True), 1)
    words = [short(called(names, label) or str(label)) for label in range(classes)]
    mpl = drawing()
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        size = min(12.0, max(4.5, 0.5 * classes + 2.0))
        figure = mpl.Figure(figsize=(size + 0.8, size), dpi=DOTS, layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="equal", interpolation="nearest")
        if classes <= NUMBERED:
            for i, j in np.argwhere(confusion_KK):
                color = "white" if shares[i, j] > 0.5 else "black"
                axes.text(j, i, f"{confusion_KK[i, j]:,}", ha="center", va="center", color=color, fontsize=9)
        if classes <= NAMED:
            axes.set_xticks(range(classes), words, rotation=45 if names else 0, ha="right" if names else "center")
            axes.set_yticks(range(classes), words)
        axes.set_xlabel("answered with")
        axes.set_ylabel("is")
        axes.set_title(title)
        figure.colorbar(image, ax=axes, label="share of the class", shrink=0.8)
        picture = as_png(mpl, figure)
    told = {"labels": list(range(classes)), "names": names, "confusion": confusion_KK.tolist()}
    whole = [called(names, label) or str(label) for label in range(classes)]
    return [*save_figure(out, "confusion", picture, told), save_confusion_sheet(out, confusion_KK, whole)]


def save_calibration(out: Path, ece: float, bins: list[dict[str, Any]], title: str) -> list[Product]:
    """Accuracy over confidence: on the diagonal, it is right as often as it thinks. Below: how many images."""
    filled = [each for each in bins if each["images"]]
    wide = bins[0]["to"] - bins[0]["from"]
    mpl = drawing()
    with mpl.rc_context(STYLE | {"axes.spines.right": False}):
        figure = mpl.Figure(figsize=(6.4, 7.0), dpi=DOTS, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        above.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.2)
        above.bar(
            [each["from"] for each in filled],
            [each["accuracy"] for each in filled],
            wide,
            align="edge",
            color=BLUE,
            alpha=0.35,
        )
        above.plot([each["confidence"] for each in filled], [each["accuracy"] for each in filled], "o", color=BLUE)
        above.set_ylabel("accuracy")
        above.set_xlim(0, 1)
        above.set_ylim(0, 1.02)
        above.set_title(f"{title}: ECE {ece:.4f}")
        below.bar([each["from"] for each in bins], [each["images"] for each in bins], wide, align="edge", color=GREY)
        below.set_ylabel("images")
        below.set_xlabel("confidence")
        picture = as_png(mpl, figure)
    return save_figure(out, "calibration", picture, {"ece": ece, "bins": bins})
