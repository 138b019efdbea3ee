"""The capture job: Algorithm 1 of the paper on one frozen autoencoder, and what can be said of the cards it makes."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from engine import capsule, standing
from engine.card_measures import in_words, measure_cards
from engine.cards import CARDS
from engine.choice import ENOUGH, Bench, choose_r, choose_source
from engine.data import Images
from engine.errors import NoPass, Stopped
from engine.files import digest_of
from engine.making import SHEET, SOURCE, make_cards, save_pictures
from engine.models import chunk_size
from engine.models.blk import multiplications
from engine.passes import Passes
from engine.passes.choose import choose
from engine.probe import forward_unverified
from engine.sources import Source
from engine.splitting import shards_of
from engine.standing import Steps
from engine.sweep import AHEAD, first_minimum
from engine.weights import load_network
from engine.work import ModelInput, Outcome, Report, Work
from flashcards.contract.recipe import Recipe
from flashcards.contract.results import CaptureResult, CardMeasures
from flashcards.contract.shards import Split
from flashcards.contract.specs import CaptureSpec


def capture(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec: CaptureSpec = work.spec
    bench = open_bench(work, stop)
    source = choose_source(bench, spec.source, spec.seed, report)
    r = choose_r(bench, spec.r, source, report)
    if r == 0 and source.starts_as_image:
        raise NoPass(f"source {source.name} starts from images, which are no cards before a pass: take r of at least 1")

    named = spec.backend if work.resume is None else standing.backend_of(work.resume)
    passes = choose_passes(work, bench, r, named, report)
    if spec.backend not in (None, passes.name):
        report.note(
            f"{spec.backend} cannot run here: {passes.name} makes these cards, and their last digits may differ from "
            "those that the recipe made before"
        )
    recipe = _recipe(work, source, r, passes.name, bench.chunk)
    shards = shards_of(work, passes, source, r, bench.chunk, stop)
    if len(shards) > 1:
        return Outcome(Split(recipe=recipe, shards=shards), [])
    show = partial(save_pictures, work, source, bench.chunk)
    steps, seconds = make_cards(work, passes, source, r, bench.chunk, report, stop, show)
    return conclude(work, bench, source, recipe, steps, seconds, report)


def open_bench(work: Work, stop: Callable[[], bool]) -> Bench:
    model, device = work.model, torch.device(work.device)

    def stop_if_asked() -> None:
        if stop():
            raise Stopped(f"stopped after 0 of {work.spec.count} cards")

    network = load_network(model, device)
    forward_unverified(network, model, device)  # raises where a probe says so, before anything is made
    chunk = chunk_size(model.architecture, model.input)
    return Bench(network, model, capsule.load(model), device, chunk, stop_if_asked)


def choose_passes(work: Work, bench: Bench, r: int, named: str | None, report: Report) -> Passes:
    model = work.model
    return choose(
        bench.network,
        model.input,
        model.range,
        multiplications=_multiplications(model),
        images=work.spec.count * r,
        chunk=bench.chunk,
        device=bench.device,
        threads=work.threads,
        note=report.note,
        named=named,
    )


def conclude(
    work: Work, bench: Bench, source: Source, recipe: Recipe, steps: Steps, seconds: float, report: Report
) -> Outcome:
    """What can be said of the cards in cards.npy."""
    spec, cards = work.spec, work.out / CARDS.name
    images = Images(np.load(cards, mmap_mode="r"), work.model.range)
    measures = measure_cards(bench.network, images, bench.chunk, bench.capsule, bench.device)
    if (words := in_words(measures)) is not None:
        report.note(words)
    result = CaptureResult(
        recipe=recipe,
        forward_unverified=forward_unverified(bench.network, work.model, bench.device),
        cards_digest=digest_of(cards),
        cards_size=cards.stat().st_size,
        gamma1=steps.gamma1,
        gamma2=steps.gamma2,
        mean_step=steps.mean(spec.count),
        **_properties(bench, source, recipe.r, steps, measures),
        measures=measures,
        seconds=seconds,
        cards_per_second=spec.count / seconds,
    )
    return Outcome(result, [CARDS, SHEET, SOURCE] if spec.materialise else [SHEET, SOURCE])


def _recipe(work: Work, source: Source, r: int, backend: str, chunk: int) -> Recipe:
    spec, model = work.spec, work.model
    return Recipe(
        model_digest=model.digest,
        source=source.name,
        seed=spec.seed,
        r=r,
        count=spec.count,
        input=model.input,
        range=model.range,
        dtype=spec.dtype,
        backend=backend,
        threads=work.threads,
        chunk=chunk,
        source_version=source.version,
        latent_scale=source.latent_scale,
        capsule_digest=model.capsule_digest if source.name == "capsule" else None,
    )


def _multiplications(model: ModelInput) -> int:
    """None where there is only one way to run the network, and so nothing to choose from."""
    return multiplications(model.architecture, model.input) if model.architecture.family == "blk" else 0


def _properties(bench: Bench, source: Source, r: int, steps: Steps, measures: CardMeasures) -> dict[str, object]:
    """P1 and P2 of the paper, where a capsule says what real images are like."""
    if bench.capsule is None:
        return {}
    # P1 asks whether the passes have come to rest: without one there is nothing to ask.
    p1 = steps.gamma2[-1] < bench.capsule.facts.eps1 if r else None
    flsd = bench.look(source, r + AHEAD).flsd
    nearest = flsd[first_minimum(flsd, start=1 if source.starts_as_image else 0)]
    # Without a pass there is no r to judge, and latents are drawn wide on purpose.
    p2 = flsd[r] <= ENOUGH * nearest if r else None
    return {"p1": p1, "p2": p2, "flsd_by_pass": flsd[: r + 1]}
