"""Which head of a classifier a task is learnt with: where labels go, and what does not fit."""

from typing import NamedTuple

from flashcards.contract.families.classifier import ClassifierFamily

MOST_HEADS, MOST_CLASSES = 20, 1000


class Place(NamedTuple):
    """Where the labels of a task stand among the scores of the classifier."""

    heads: tuple[int, ...]  # of the classifier once it has learnt the task
    first: int  # the score of the task's lowest label
    classes: int
    lowest: int  # of the labels in its dataset


class HeadUnfit(ValueError):
    """In words, why the labels do not go with the heads."""


def place_of(
    scenario: str, architecture: ClassifierFamily, learnt: tuple[int, ...], lowest: int, highest: int
) -> Place:
    """Of a task with these labels. `learnt` are the heads so far, `architecture` may name those to come.

    task_incremental: a head of its own, its first class being the lowest label. new_instance: the one head there is.
    """
    if scenario == "new_instance":
        heads = learnt or architecture.heads[:1] or (max(2, highest + 1),)
        classes = sum(heads)
        if lowest < 0 or highest >= classes:
            raise HeadUnfit(
                f"its labels go from {lowest} to {highest}, and the learner's classes are 0 to {classes - 1}: "
                "every session has the same classes"
            )
        return Place(heads, 0, classes, 0)
    if lowest < 0:
        raise HeadUnfit(f"its labels go from {lowest} to {highest}: number them from 0")
    found = highest - lowest + 1
    planned = architecture.heads[len(learnt) : len(learnt) + 1]
    if planned and found > planned[0]:
        raise HeadUnfit(
            f"its labels {lowest} to {highest} are {found} classes, and head {len(learnt) + 1} of {architecture.name} "
            f"tells {planned[0]} apart"
        )
    classes = planned[0] if planned else max(2, found)
    if classes > MOST_CLASSES:
        raise HeadUnfit(
            f"its labels {lowest} to {highest} are {found:,} classes, and a head has at most {MOST_CLASSES:,}"
        )
    if len(learnt) == MOST_HEADS:
        raise HeadUnfit(f"the learner has {MOST_HEADS} heads already, and a classifier has no more")
    return Place((*learnt, classes), sum(learnt), classes, lowest)
