"""What the engine is handed, what it tells while it works, and what it hands back."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape
from flashcards.contract.learners import Matrix
from flashcards.contract.recipe import Recipe
from flashcards.contract.resources import Progress, Result
from flashcards.contract.results import TaskMeasure
from flashcards.contract.shards import ShardResult, Split
from flashcards.contract.specs import EngineSpec


@dataclass(frozen=True, kw_only=True)
class ModelInput:
    path: Path
    digest: str
    architecture: Architecture
    input: ImageShape
    range: tuple[float, float]
    made_here: bool = False  # trained by this engine: its forward pass is the one that made it
    capsule: Path | None = None
    capsule_digest: str | None = None
    probe: Path | None = None  # images x and the answers y that the owner's network gives, x_NHWC


@dataclass(frozen=True, kw_only=True)
class DatasetInput:
    path: Path
    digest: str
    input: ImageShape | None = None  # where it is known before the file is read
    labels: list[str] | None = None  # what label 0, 1, .. is called


@dataclass(frozen=True, kw_only=True)
class CardsInput:
    path: Path  # cards.npy, N x H x W x C: uint8, or float32 in the model's range
    digest: str


@dataclass(frozen=True, kw_only=True)
class TaskInput:
    """A task that the learner has learnt."""

    name: str
    capsule: Path | None = None  # as refreshed for the network of the base version
    test: DatasetInput | None = None  # where its images are still there to measure on
    classes: int = 0  # of a learner of classes: how many it has, and its lowest label
    lowest: int = 0


@dataclass(frozen=True, kw_only=True)
class LearnerInput:
    """A learner at its base version. The network of that version is `Work.model`; None at the first task."""

    scenario: str
    noise: float
    clip: bool
    architecture: Architecture
    range: tuple[float, float]
    tasks: list[TaskInput]
    measures: list[list[TaskMeasure]]  # rows of the matrix so far, the base version's last
    state: Path | None = None  # what the base version's strategy kept beside images and capsules
    images: Path | None = None  # and of images
    autoencoder: Architecture | None = None  # of a learner of classes: what makes cards


@dataclass(frozen=True, kw_only=True)
class UnitInput:
    """What one learner of a comparison came to: one strategy with one seed."""

    strategy: int  # its place in the spec
    seed: int
    matrix: Matrix
    keeps_data: bool = False
    failed: str | None = None  # why it did not learn all tasks


@dataclass(frozen=True, kw_only=True)
class PartsInput:
    """All shards of a capture, in the order of their cards."""

    recipe: Recipe
    paths: list[Path]  # of their cards.npy; each goes once it is joined
    results: list[ShardResult]
    seconds: float  # while at least one of them was being made


@dataclass(frozen=True, kw_only=True)
class Work:
    spec: EngineSpec
    out: Path  # an empty folder, the only place to write
    model: ModelInput | None = None  # of a training: the one that images are passed through first
    dataset: DatasetInput | None = None
    cards: CardsInput | None = None  # made from `model`
    learner: LearnerInput | None = None
    autoencoder: ModelInput | None = None  # of a learner of classes: that of the base version
    test_dataset: DatasetInput | None = None
    units: Sequence[UnitInput] = ()
    parts: PartsInput | None = None  # of a capture that was split
    shards: int = 1  # that a capture may be split into
    resume: Path | None = None  # a resume point that an earlier attempt at the same job left
    resume_seconds: float = 10.0  # at least this long between resume points; 0 makes one at every step
    refuse_collapse: bool = True  # an experiment goes on with whatever it got: a collapsed network is a finding too
    device: str = "cpu"
    threads: int = 1


class Report(Protocol):
    def progress(self, progress: Progress) -> None:
        """Called at every step; the caller decides how many are worth passing on."""

    def metric(self, step: int, values: dict[str, float]) -> None: ...

    def resume_point(self, path: Path, step: int) -> None:
        """The file is complete and on the disk."""

    def note(self, text: str) -> None:
        """Something a user should know, and that is no failure."""


@dataclass(frozen=True)
class Product:
    name: str  # of a file in `Work.out`
    media_type: str
    shows_data: bool = False  # images of the dataset can be seen in it


@dataclass(frozen=True)
class Outcome:
    result: Result | Split  # the second: nothing is made yet, others are to make it
    products: list[Product]
