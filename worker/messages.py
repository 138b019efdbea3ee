"""What supervisor and runner say to each other: one JSON object a line, down stdin and up stdout."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from flashcards.contract.architecture import ArchitectureField
from flashcards.contract.base import Record
from flashcards.contract.image import PixelRange, Shape
from flashcards.contract.learners import Matrix
from flashcards.contract.recipe import Recipe
from flashcards.contract.resources import Failure, Progress
from flashcards.contract.results import TaskMeasure
from flashcards.contract.shards import ShardResult, Split
from flashcards.contract.specs import EngineSpec, Scenario


class StagedModel(Record):
    path: str
    digest: str
    architecture: ArchitectureField
    input: Shape
    range: PixelRange
    made_here: bool
    probe: str | None = None
    capsule: str | None = None
    capsule_digest: str | None = None


class StagedDataset(Record):
    path: str
    digest: str
    input: Shape | None = None
    labels: list[str] | None = None


class StagedCards(Record):
    path: str
    digest: str


class StagedTask(Record):
    name: str
    capsule: str | None = None
    test: StagedDataset | None = None
    classes: int = 0
    lowest: int = 0


class StagedLearner(Record):
    """A learner at the version that the task starts from."""

    scenario: Scenario
    noise: float
    clip: bool
    architecture: ArchitectureField
    autoencoder: ArchitectureField | None = None
    range: PixelRange
    tasks: list[StagedTask]
    measures: list[list[TaskMeasure]]
    state: str | None = None
    images: str | None = None


class StagedUnit(Record):
    """What one learner of a comparison came to."""

    strategy: int
    seed: int
    matrix: Matrix
    keeps_data: bool
    failed: str | None = None


class StagedParts(Record):
    """The shards of a capture, in the order of their cards."""

    recipe: Recipe
    paths: list[str]
    results: list[ShardResult]
    seconds: float


class Assignment(Record):
    """Everything a runner gets to know. Paths are local; there is no address and no secret in it."""

    spec: EngineSpec
    out: str
    model: StagedModel | None = None
    dataset: StagedDataset | None = None
    cards: StagedCards | None = None
    learner: StagedLearner | None = None
    autoencoder: StagedModel | None = None
    test_dataset: StagedDataset | None = None
    units: list[StagedUnit] = []
    parts: StagedParts | None = None
    shards: int = 1
    resume: str | None = None
    resume_seconds: float
    device: str
    threads: int
    traced: bool = False


class Drawing(Record):
    """The other thing that a runner is asked for: the network of this file as an ONNX graph, into the folder `out`."""

    draw: StagedModel
    out: str


class FileMade(Record):
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    media_type: str
    shows_data: bool = False


class DeviceMemory(Record):
    device: str
    used_bytes: int
    total_bytes: int


class SaidProgress(Record):
    say: Literal["progress"] = "progress"
    progress: Progress
    metrics: list[tuple[int, dict[str, float]]] = []
    memory: DeviceMemory | None = None


class SaidStage(Record):
    """A part of the work that is over, in seconds since 1970. Said where the attempt is traced."""

    say: Literal["stage"] = "stage"
    name: str = Field(max_length=40)
    began_at: float
    ended_at: float


class SaidNote(Record):
    say: Literal["note"] = "note"
    text: str


class SaidResumePoint(Record):
    say: Literal["resume_point"] = "resume_point"
    file: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    step: int


class SaidDone(Record):
    say: Literal["done"] = "done"
    result: dict[str, Any]
    files: list[FileMade]


class SaidSplit(Record):
    say: Literal["split"] = "split"
    split: Split


class SaidFailed(Record):
    say: Literal["failed"] = "failed"
    error: Failure
    files: list[FileMade]


class SaidStopped(Record):
    say: Literal["stopped"] = "stopped"
    files: list[FileMade]


Last = SaidDone | SaidSplit | SaidFailed | SaidStopped
Said = Annotated[
    SaidProgress | SaidStage | SaidNote | SaidResumePoint | SaidDone | SaidSplit | SaidFailed | SaidStopped,
    Field(discriminator="say"),
]
said: TypeAdapter[Said] = TypeAdapter(Said)
