"""The model card of a bundle: what it is, where it came from and how good it is, in Markdown for people."""

import re
from collections.abc import Iterator
from typing import Any

from flashcards.contract.ancestry import AncestorCards, Ancestry, Measured
from flashcards.contract.architecture import Architecture
from flashcards.contract.bundle import Bundle, BundledLearner, BundledModel
from flashcards.contract.image import ImageShape

MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~-])")
FRONT = "---\nlibrary_name: flashcards\ntags:\n- flashcards\n- {task}\n---\n"
HERE = """## Use it

- In an installation of Flashcards: `flashcards models import FILE.zip`, or `POST /v1/bundles` with the file as body.
- Anywhere else: `*.safetensors` are plain safetensors files, and `bundle.json` says which architecture they are of,
  which images it takes (height x width x channels) and which values their pixels have.

## What is not in it

No image: neither the data that it learnt from, nor a probe, nor what a strategy keeps beside capsules. A capsule holds
mean and covariance of latents, and bounds of errors. Ids are those of the installation that made the bundle."""


def card(manifest: Bundle, lineage: Ancestry, recipes: list[AncestorCards], metrics: list[Measured]) -> str:
    told = manifest.what
    parts = [
        FRONT.format(task=told.architecture.task),
        f"# {plain(told.name)}\n",
        _model(told) if isinstance(told, BundledModel) else _learner(told),
        _table("Where it came from", ("what", "id", "name or kind"), _descent(lineage)),
        _table("What was measured", ("job", "figure", "value"), _figures(metrics)),
        _table("Flashcards captured from it", ("id", "recipe", "digest"), map(_recipe, recipes)),
        HERE,
    ]
    return "\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Names are the users', and mean nothing to whoever renders the card."""
    return MARKUP.sub(r"\\\1", text)


def _model(model: BundledModel) -> str:
    facts = _network(model.architecture, model.input, model.range)
    capsule = "with a capsule" if model.capsule else "without a capsule"
    return f"A model, {facts}, {capsule}. At home it is `{model.id}` ({model.origin}).\n"


def _learner(learner: BundledLearner) -> str:
    newest = learner.versions[-1]
    facts = _network(newest.architecture or learner.architecture, learner.input, learner.range)
    lines = [f"A learner at version {newest.number}, {facts}. At home it is `{learner.id}` ({learner.scenario}).\n"]
    rows = []
    for number, measure in enumerate(newest.measures, start=1):
        said = measure.accuracy if measure.mae is None else measure.mae
        rows.append((str(number), plain(measure.task), "-" if said is None else f"{said:.4f}"))
    metric = "accuracy" if learner.architecture.task == "classify" else "MAE"
    return lines[0] + "\n" + _table("What it knows", ("task", "name", metric), iter(rows))


def _network(architecture: Architecture, image: ImageShape, bounds: tuple[float, float]) -> str:
    count = f"{architecture.parameters(image):,} parameters"
    low, high = bounds
    return f"`{architecture.name}` ({architecture.manner}), {count}, for images of {image} from {low:g} to {high:g}"


def _descent(lineage: Ancestry) -> Iterator[tuple[str, ...]]:
    for job in lineage.jobs:
        yield "job", f"`{job.id}`", plain(job.kind)
    for dataset in lineage.datasets:
        counts = ", ".join(f"{count:,} in {plain(split)}" for split, count in dataset.splits.items())
        yield "dataset", f"`{dataset.id}`", f"{plain(dataset.name)} ({counts})"
    for model in lineage.models:
        yield "model", f"`{model.id}`", plain(model.name)
    for cards in lineage.flashcards:
        yield "flashcards", f"`{cards.id}`", f"{cards.recipe.count:,} from {plain(cards.recipe.source)}"


def _figures(metrics: list[Measured]) -> Iterator[tuple[str, ...]]:
    for each in metrics:
        for name, value in each.result.items():
            if _is_figure(name, value):
                yield f"{plain(each.kind)} `{each.job}`", plain(name), f"{value:g}"


def _is_figure(name: str, value: Any) -> bool:
    return isinstance(value, float) and name not in ("seconds", "images_per_second", "cards_per_second")


def _recipe(cards: AncestorCards) -> tuple[str, ...]:
    recipe = cards.recipe
    words = f"{recipe.count:,} cards, source {plain(recipe.source)}, r {recipe.r}, seed {recipe.seed}"
    return f"`{cards.id}`", words, f"`{cards.digest}`" if cards.digest else "-"


def _table(title: str, columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    head = [f"## {title}\n", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*head, *lines]) + "\n"
