"""What a strategy finds when a task begins."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.data import Images
from engine.models import Autoencoder, Network
from engine.noise import Noise
from engine.work import ModelInput, Report, Work
from flashcards.contract.heads import Place
from flashcards.contract.strategies import Strategy as Config


@dataclass(frozen=True)
class Classes:
    """What a learner of classes knows beside images."""

    labels_N: np.ndarray  # of the new images, as the classifier counts
    place: Place  # of the new task among the scores
    spans: list[tuple[int, int]]  # first score and number of classes of what is told apart by itself, of earlier tasks
    autoencoder: Autoencoder | None  # frozen, of the base version: what makes cards

    @property
    def total(self) -> int:
        """Scores that the classifier gives."""
        return sum(self.place.heads)

    @property
    def known(self) -> int:
        """Scores that the base version's classifier gives."""
        return max((first + count for first, count in self.spans), default=0)


@dataclass(frozen=True, kw_only=True)
class Setting:
    work: Work
    config: Config
    base: Network | None  # frozen, of the base version; None at the first task
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
    classes: "Classes | None" = None  # of a learner of classes

    @property
    def number(self) -> int:
        """Of the new task; 1 is the first."""
        return len(self.work.learner.tasks) + 1

    @property
    def maker(self) -> tuple[Autoencoder, ModelInput] | None:
        """The network that cards of the earlier tasks are made with, as it is and as it came; None: there is none."""
        if self.classes is None:
            return None if self.base is None else (self.base, self.work.model)
        return None if self.classes.autoencoder is None else (self.classes.autoencoder, self.work.autoencoder)

    @property
    def names(self) -> list[str]:
        """Of the earlier tasks."""
        return [task.name for task in self.work.learner.tasks]
