"""What a strategy finds when a task begins."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.data import Images
from engine.models import Autoencoder
from engine.noise import Noise
from engine.work import Report, Work
from flashcards.contract.strategies import Strategy as Config


@dataclass(frozen=True, kw_only=True)
class Setting:
    work: Work
    config: Config
    base: Autoencoder | None  # frozen, of the base version; None at the first task
    images: Images  # of the new task
    train_rows: np.ndarray
    validation_rows: np.ndarray
    own_rows: np.ndarray  # both: what may be kept, since the task is measured on others
    noise: Noise | None
    chunk: int
    device: torch.device
    report: Report
    between: Callable[[], None]  # may raise: someone wants the work to stop
    state: dict[str, torch.Tensor]  # what the same strategy kept at the base version; empty: nothing
    kept_images: dict[str, np.ndarray]

    @property
    def number(self) -> int:
        """Of the new task; 1 is the first."""
        return len(self.work.learner.tasks) + 1

    @property
    def names(self) -> list[str]:
        """Of the earlier tasks."""
        return [task.name for task in self.work.learner.tasks]
