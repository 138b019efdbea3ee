"""A row of a learner's matrix: the error on every task so far, on its test images, and without any.

The estimate for an earlier task, from nothing but the two networks and the task's capsule:

    estimate = last estimate + (error of the new network on cards - error of the old one on the same cards)

where cards are made as hard as the task's images (`engine.refresh`). It starts from what was measured on the task's own
images when it was learnt, and no image has a part in it from then on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.errors import Diverged
from engine.measures import mae_B, psnr_B, ssim_B
from engine.noise import Noise, seen_through
from engine.refresh import Refreshed
from engine.task_data import TestImages
from flashcards.contract.results import TaskMeasure
from flashcards.contract.specs import Budget


@torch.inference_mode()
def measure_task(
    name: str,
    network: torch.nn.Module,
    test: TestImages,
    noise: Noise | None,
    chunk: int,
    device: torch.device,
    between: Callable[[], None],
) -> TaskMeasure:
    predict, ends, parts = seen_through(noise, network), test.images.range, []
    for first in range(0, len(test.rows), chunk):
        x_BCHW = test.images.batch(test.rows[first : first + chunk], device)
        pair = (x_BCHW, predict(x_BCHW))
        parts.append(torch.stack([mae_B(*pair), psnr_B(*pair, ends), ssim_B(*pair, ends)]).cpu().double().numpy())
        between()
    mae, psnr, ssim = np.concatenate(parts, axis=1).mean(1).tolist()
    if not np.isfinite(mae):
        raise Diverged(f"the network gives no finite answer to images of task {name}: look at its weights")
    return TaskMeasure(task=name, mae=mae, psnr=psnr, ssim=ssim)


def known_error(last: TaskMeasure) -> float | None:
    """What is known without images; at the start of a learner's record that may be what images say."""
    return last.mae if last.estimated_mae is None else last.estimated_mae


def estimate(last: TaskMeasure, cards: Refreshed) -> float | None:
    """None where the task's error was never known."""
    known = known_error(last)
    return None if known is None else max(0.0, known + cards.new_error - cards.base_error)


@dataclass(frozen=True)
class Forgetting:
    """Of one earlier task."""

    task: str
    rise: float
    before: float | None  # its error at the base version
    on: str

    def beyond(self, budget: Budget) -> float:
        """By how much it rose more than it may. Not a number: nobody knows what it rose from."""
        if budget.absolute is not None:
            return self.rise - budget.absolute
        return math.nan if self.before is None else self.rise - budget.relative * self.before


def largest(rises: list[Forgetting]) -> Forgetting | None:
    return max(rises, key=lambda each: each.rise, default=None)


def breaking(rises: list[Forgetting], budget: Budget | None) -> Forgetting | None:
    """The task that breaks it by most. Where it is relative, a small rise of a small error may break it."""
    broken = [] if budget is None else [each for each in rises if each.beyond(budget) > 0]
    return max(broken, key=lambda each: each.beyond(budget), default=None)


def forgetting(earlier: list[TaskMeasure], row: list[TaskMeasure], cards: list[Refreshed]) -> list[Forgetting]:
    """On images where both versions were measured on them, else by what happened to the cards."""
    rises = []
    for before, after, each in zip(earlier, row, cards, strict=False):
        if before.mae is not None and after.mae is not None:
            rises.append(Forgetting(before.task, after.mae - before.mae, before.mae, "images"))
        else:
            # Of a model that came with nothing only its error on cards is known, and that is what cards tell of.
            known = known_error(before)
            rise = each.new_error - each.base_error
            rises.append(Forgetting(before.task, rise, each.base_error if known is None else known, "cards"))
    return rises
