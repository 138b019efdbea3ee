"""A shard: some cards of a large capture, made as its recipe says and as they would be in one piece."""

from collections.abc import Callable

import torch

from engine.capture import choose_passes, open_bench
from engine.cards import CARDS
from engine.choice import Bench
from engine.device import processor
from engine.errors import OtherMake
from engine.making import make_cards
from engine.sources import Source
from engine.work import Outcome, Report, Work
from flashcards.contract.recipe import Recipe
from flashcards.contract.shards import CardSteps, ShardResult
from flashcards.contract.specs import ShardSpec


def shard(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec: ShardSpec = work.spec
    recipe = spec.recipe
    bench, source = reopen(work, recipe, stop)
    passes = choose_passes(work, bench, recipe.r, recipe.backend, report)
    if passes.name != recipe.backend:
        raise OtherMake(
            f"the capture was begun with {recipe.backend}, and this worker has {passes.name}: bring all workers of the "
            "queue to one build, then retry, which begins the capture anew"
        )
    steps, seconds = make_cards(
        work, passes, source, recipe.r, bench.chunk, report, stop, lambda count: [], first=spec.first
    )
    told = CardSteps(gamma1=steps.gamma1, gamma2=steps.gamma2, sums=steps.sums)
    result = ShardResult(
        first=spec.first, cards=spec.count, steps=told, seconds=seconds, processor=processor(torch.device(work.device))
    )
    return Outcome(result, [CARDS])


def reopen(work: Work, recipe: Recipe, stop: Callable[[], bool]) -> tuple[Bench, Source]:
    """What the first step of the capture has decided on, if it is still the same here."""
    if recipe.capsule_digest not in (None, work.model.capsule_digest):
        raise OtherMake("the capsule was replaced since the capture was begun: retry, which begins it anew")
    bench = open_bench(work, stop)
    source = bench.open(recipe.source, recipe.seed)
    if (source.version, bench.chunk) != (recipe.source_version, recipe.chunk):
        raise OtherMake("this worker is of another release than the one that began the capture: retry begins it anew")
    return bench, source
