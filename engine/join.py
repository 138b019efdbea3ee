"""The last step of a capture that was split: shards become one set, measured as one that was made in one piece."""

from collections.abc import Callable

from engine.capture import conclude
from engine.cards import CARDS, CardFile
from engine.errors import CardsUnfit, Stopped
from engine.making import save_pictures
from engine.shard import reopen
from engine.standing import Steps
from engine.work import Outcome, PartsInput, Report, Work
from flashcards.contract.resources import Progress


def join(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec, parts = work.spec, work.parts
    recipe = parts.recipe
    report.progress(Progress(fraction=1.0, step=spec.count, steps=spec.count, unit="cards"))
    _note_processors(parts, report)
    bench, source = reopen(work, recipe, stop)
    with CardFile(work.out / CARDS.name, recipe.input, recipe.dtype, recipe.range) as cards:
        for path in parts.paths:
            if stop():
                raise Stopped(f"stopped after joining {cards.count} of {spec.count} cards")
            cards.join(path)
            path.unlink()  # so that the disk never holds all of them twice
    if cards.count != recipe.count:
        raise CardsUnfit(f"the shards hold {cards.count} cards, and {recipe.count} were asked for")
    save_pictures(work, source, bench.chunk, cards.count)
    outcome = conclude(work, bench, source, recipe, _steps(parts), parts.seconds, report)
    return Outcome(outcome.result.model_copy(update={"shards": len(parts.results)}), outcome.products)


def _steps(parts: PartsInput) -> Steps:
    steps = Steps.begin(parts.recipe.r)
    for result in parts.results:
        steps.join(result.steps.gamma1, result.steps.gamma2, result.steps.sums)
    return steps


def _note_processors(parts: PartsInput, report: Report) -> None:
    found = sorted({result.processor for result in parts.results})
    if len(found) > 1:
        report.note(
            f"the shards were made on {' and on '.join(found)}: the cards may differ in their last digits from those "
            "of one worker"
        )
