"""The learn job: a learner learns its next task, and what it keeps for the one after is measured.

From the network of the base version: train on the new images by the strategy, measure every task so far, refresh the
capsules. A learner of classes has two networks, and the one that makes cards learns after the one that answers. Where
earlier tasks became worse than the budget allows it is tried once more, twice as carefully.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from engine.class_desk import ClassDesk, ClassDone
from engine.class_learnt import class_outcome
from engine.desk import Desk, Done, Try, base_digest
from engine.errors import ForgotTooMuch
from engine.learn_measures import Forgetting, breaking
from engine.learnt import outcome
from engine.resume import told_of
from engine.work import Outcome, Report, Work
from flashcards.contract.specs import CLASSIFY, LearnSpec

TRIES = 2


def learn(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec: LearnSpec = work.spec
    work, first = _where_to_begin(work, report)
    classes = work.learner.scenario in CLASSIFY
    desk = (ClassDesk if classes else Desk).open(work, report, stop)
    done = desk.attempt(work, first)
    broken = breaking(done.rises, spec.max_forgetting)
    if broken is not None and first.number < TRIES and desk.can_be_careful:
        report.note(f"{_words(broken, spec)}: tried once more, with twice the weight of the old and twice the cards")
        second = Try(first.number + 1, *done.next_try)
        done = desk.attempt(replace(work, resume=None), second)
        broken = breaking(done.rises, spec.max_forgetting)
    if broken is not None:
        raise ForgotTooMuch(
            f"{_words(broken, spec)}; the learner stays as it was. Take a strategy that keeps more, a higher count or "
            "weight, or a larger max_forgetting"
        )
    _note_what_cannot_be_held(done, spec, report)
    return class_outcome(desk, done) if classes else outcome(desk, done)


def _where_to_begin(work: Work, report: Report) -> tuple[Work, Try]:
    """A resume point is of use only to who starts from the same version."""
    if work.resume is None:
        return work, Try()
    told = told_of(work.resume)
    if told["base"] != base_digest(work):
        report.note("an earlier attempt started from another version of the learner: the task is begun anew")
        return replace(work, resume=None), Try()
    return work, Try(*told["try"])


def _words(broken: Forgetting, spec: LearnSpec) -> str:
    budget = spec.max_forgetting
    allowed = f"{budget.absolute:.6g}" if budget.absolute is not None else f"{budget.relative:.4g} of it"
    before = "unknown" if broken.before is None else f"{broken.before:.6g}"
    return (
        f"the error on task {broken.task}, {before} before, rose by {broken.rise:.6g} (measured on {broken.on}), and "
        f"{allowed} is allowed"
    )


def _note_what_cannot_be_held(done: Done | ClassDone, spec: LearnSpec, report: Report) -> None:
    budget = spec.max_forgetting
    unknown = [] if budget is None else [each.task for each in done.rises if math.isnan(each.beyond(budget))]
    if unknown:
        report.note(
            f"how good {', '.join(unknown)} was before is not known: a relative max_forgetting says nothing there"
        )
