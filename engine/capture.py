"""The capture job: Algorithm 1 of the paper on one frozen autoencoder, and what can be said of the cards it makes."""

from collections.abc import Callable

import numpy as np
import torch

from engine import capsule, standing
from engine.card_measures import in_words, measure_cards
from engine.cards import CARDS
from engine.choice import ENOUGH, Bench, choose_r, choose_source
from engine.data import Images
from engine.errors import NoPass, Stopped
from engine.files import digest_of
from engine.making import SHEET, SOURCE, make_cards
from engine.models import chunk_size
from engine.models.blk import multiplications
from engine.passes.choose import choose
from engine.probe import forward_unverified
from engine.sources import Source
from engine.standing import Steps
from engine.sweep import AHEAD, first_minimum
from engine.weights import load_network
from engine.work import ModelInput, Outcome, Report, Work
from flashcards.contract.recipe import Recipe
from flashcards.contract.results import CaptureResult, CardMeasures
from flashcards.contract.specs import CaptureSpec


def capture(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec: CaptureSpec = work.spec
    model, device = work.model, torch.device(work.device)
    network = load_network(model, device)
    unverified = forward_unverified(network, model, device)
    chunk = chunk_size(model.architecture, model.input)

    def stop_if_asked() -> None:
        if stop():
            raise Stopped(f"stopped after 0 of {spec.count} cards")

    bench = Bench(network, model, capsule.load(model), device, chunk, stop_if_asked)
    source = choose_source(bench, spec.source, spec.seed, report)
    r = choose_r(bench, spec.r, source, report)
    if r == 0 and source.starts_as_image:
        raise NoPass(f"source {source.name} starts from images, which are no cards before a pass: take r of at least 1")

    passes = choose(
        network,
        model.input,
        model.range,
        multiplications=_multiplications(model),
        images=spec.count * r,
        chunk=chunk,
        device=device,
        threads=work.threads,
        note=report.note,
        named=spec.backend if work.resume is None else standing.backend_of(work.resume),
    )
    if spec.backend not in (None, passes.name):
        report.note(
            f"{spec.backend} cannot run here: {passes.name} makes these cards, and their last digits may differ from "
            "those that the recipe made before"
        )
    steps, seconds = make_cards(work, passes, source, r, chunk, report, stop)
    images = Images(np.load(work.out / CARDS.name, mmap_mode="r"), model.range)
    measures = measure_cards(network, images, chunk, bench.capsule, device)
    if (words := in_words(measures)) is not None:
        report.note(words)
    result = CaptureResult(
        recipe=_recipe(work, source, r, passes.name, chunk),
        forward_unverified=unverified,
        cards_digest=digest_of(work.out / CARDS.name),
        cards_size=(work.out / CARDS.name).stat().st_size,
        gamma1=steps.gamma1,
        gamma2=steps.gamma2,
        mean_step=[total / spec.count for total in steps.sums],
        **_properties(bench, source, r, steps, measures),
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
    return {"p1": p1, "p2": flsd[r] <= ENOUGH * nearest, "flsd_by_pass": flsd[: r + 1]}
