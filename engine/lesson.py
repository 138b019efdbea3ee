"""What a training is about: who learns what, from which weights on, by which strategy."""

from dataclasses import dataclass, field

import numpy as np
import torch

from engine.aims import Aim, Reconstruct
from engine.data import Images, hold_out
from engine.noise import Noise
from engine.strategies.base import Strategy
from engine.weights import WEIGHTS
from engine.work import Product
from flashcards.contract.architecture import Architecture
from flashcards.contract.specs import LearningSpec


@dataclass(frozen=True, kw_only=True)
class Lesson:
    architecture: Architecture
    images: Images
    train_rows: np.ndarray
    validation_rows: np.ndarray
    weights: dict[str, torch.Tensor] | None = None  # where it starts; None: random ones of the seed
    aim: Aim = field(default_factory=Reconstruct)
    noise: Noise | None = None
    strategy: Strategy = field(default_factory=Strategy)
    product: Product = WEIGHTS  # the file of its weights
    about: dict[str, object] = field(default_factory=dict)  # goes into resume points
    first_step: int = 0  # of an earlier try at the same job, whose resume points count as well
    first_seconds: float = 0.0
    later_steps: int = 0  # of what is learnt after it, in the same job


def plain_lesson(spec: LearningSpec, images: Images) -> Lesson:
    """A new network and its images."""
    train_rows, validation_rows = hold_out(len(images), spec.validation_share, spec.seed)
    return Lesson(architecture=spec.architecture, images=images, train_rows=train_rows, validation_rows=validation_rows)
