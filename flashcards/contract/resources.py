"""What the API answers with, as the client reads it."""

from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from flashcards.contract.ancestry import Imported
from flashcards.contract.architecture import ArchitectureField, Task
from flashcards.contract.base import DatasetId, FlashcardsId, JobId, ModelId, Moment, Record
from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.class_results import (
    EvaluateClassifierResult,
    LearnClassesResult,
    PredictResult,
    TrainClassifierResult,
)
from flashcards.contract.image import PixelRange, Shape
from flashcards.contract.recipe import Recipe
from flashcards.contract.results import (
    AnalyzeResult,
    CaptureResult,
    CompareResult,
    DistillResult,
    EvaluateCardsResult,
    EvaluateResult,
    ExportResult,
    LearnResult,
    NoopResult,
    TrainResult,
)
from flashcards.contract.shards import ShardResult
from flashcards.contract.specs import AnySpec, JobKind, JobSpec

JobState = Literal["waiting", "queued", "running", "succeeded", "failed", "cancelled"]
Result = (
    TrainResult
    | TrainClassifierResult
    | CaptureResult
    | ShardResult
    | AnalyzeResult
    | DistillResult
    | LearnResult
    | LearnClassesResult
    | EvaluateResult
    | EvaluateClassifierResult
    | EvaluateCardsResult
    | PredictResult
    | ExportResult
    | CompareResult
    | NoopResult
)
TERMINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})
Item = TypeVar("Item")


class Page(Record, Generic[Item]):
    items: list[Item]
    next_cursor: str | None = Field(default=None, description="give it back as `cursor` for the next page")


class StoredCapsule(CapsuleFacts):
    """A capsule as its model shows it; the file is at `/v1/models/{id}/capsule`."""

    digest: str
    size: int


class Model(Record):
    id: ModelId
    name: str
    architecture: ArchitectureField
    architecture_name: str
    task: Task = Field(description="what it does with an image: give it back, or say its class")
    input: Shape
    range: PixelRange
    parameters: int
    digest: str
    size: int
    origin: Literal["upload", "train", "distill", "learn", "import"]
    job: JobId | None = None
    probe: str | None = Field(default=None, description="digest of the probe that every use is checked against")
    capsule: StoredCapsule | None = Field(default=None, description="what was measured on its images")
    mapping: dict[str, str] | None = Field(
        default=None, description="what the checkpoint called each tensor -> its name here, where they differ"
    )
    uploaded_digest: str | None = Field(
        default=None, description="SHA-256 of the file that was uploaded, where what is kept was made from it"
    )
    created_at: Moment


class Lineage(Record):
    """Where a model came from, and what came of it; newest first, a hundred of each at most."""

    model: ModelId
    job: JobId | None = Field(description="the job that made it; null for an upload")
    made_from: list[str] = Field(description="what that job read")
    flashcards: list[FlashcardsId] = Field(description="captured from it")
    used_by: list[JobId] = Field(description="jobs that read it")
    names: dict[str, str] = Field(default={}, description="what the newest of these are called; of jobs, what they are")
    imported: Imported | None = Field(default=None, description="what the bundle says that brought it, if one did")


class Split(Record):
    count: int
    shape: Shape
    dtype: str
    low: float
    high: float
    classes: int | None = Field(default=None, description="how many different labels, where there are labels")
    highest_label: int | None = Field(default=None, description="the largest of them; a classifier counts from 0")
    lowest_label: int | None = None
    labels: list[str] | None = Field(
        default=None, description="what label 0, 1, ... is called, where folders were labels or the file says so"
    )


class Preparation(Record):
    """What was done to the images of an upload before they were kept."""

    input: Shape | None = Field(default=None, description="the shape that was asked for")
    resize: Literal["bilinear"] | None = Field(default=None, description="the filter, where a side changed")
    channels: Literal["copied", "luma"] | None = Field(
        default=None, description="grey copied to three channels, or colours weighed into one"
    )
    invert: bool = Field(default=False, description="255 - x")


class Dataset(Record):
    id: DatasetId
    name: str
    digest: str
    size: int
    format: str
    splits: dict[str, Split]
    preparation: Preparation | None = Field(default=None, description="null: nothing was done to the images")
    uploaded_digest: str | None = Field(
        default=None, description="SHA-256 of the file that was uploaded, where what is kept was made from it"
    )
    created_at: Moment
    expires_at: Moment | None = Field(default=None, description="unused, it is deleted then; null: it stays")


class Flashcards(Record):
    id: FlashcardsId
    name: str | None = None
    model: ModelId
    job: JobId
    recipe: Recipe
    digest: str
    size: int
    materialised: bool = Field(
        default=True, description="false: only the recipe is kept; digest and size are the cards'"
    )
    created_at: Moment


class Progress(Record):
    fraction: float = 0.0
    step: int = 0
    steps: int | None = None
    epoch: int | None = None
    loss: float | None = None
    rate: float | None = Field(default=None, description="images or cards a second")
    unit: str | None = None
    eta_seconds: float | None = None


class Failure(Record):
    type: str
    title: str
    detail: str


class Attempt(Record):
    number: int
    worker: str
    started_at: Moment
    ended_at: Moment | None = None
    outcome: str | None = None
    reason: str | None = None


class Artifact(Record):
    name: str
    media_type: str
    digest: str
    size: int
    attempt: int
    created_at: Moment


class JobSummary(Record):
    """A job as lists show it; the item adds what costs a query."""

    id: JobId
    kind: JobKind
    parent: JobId | None = Field(default=None, description="the job that waits for this one, and goes on with it")
    state: JobState
    labels: dict[str, str]
    progress: Progress
    error: Failure | None = None
    result: Result | None = None
    cancel_requested: bool = False
    created_at: Moment
    started_at: Moment | None = None
    ended_at: Moment | None = None


class Job(JobSummary):
    spec: AnySpec
    queue: str
    queue_position: int | None = Field(default=None, description="1 is next; null once it is claimed")
    attempts: list[Attempt] = []
    artifacts: list[Artifact] = []


class Event(Record):
    seq: int
    kind: Literal["state", "progress", "log", "resume_point", "note", "warning"]
    attempt: int
    at: Moment
    data: dict[str, Any]


class MetricPoint(Record):
    step: int
    value: float
    attempt: int


class Metrics(Record):
    metrics: dict[str, list[MetricPoint]]


class Validated(Record):
    valid: Literal[True] = True
    spec: JobSpec
    queue: str


class Amount(Record):
    count: int = Field(description="files, each counted once however many refer to it")
    bytes: int


class StorageKinds(Record):
    """By what refers to the files. A file that two kinds refer to counts in both, and once in the total."""

    models: Amount
    datasets: Amount
    flashcards: Amount
    learners: Amount
    artifacts: Amount
    resume_points: Amount
    uploads: Amount
    unreferenced: Amount


class StoredFile(Record):
    digest: str
    size: int
    created_at: Moment
    kept_for: list[str] = Field(description="who refers to it, a hundred at most; empty: nobody any more")
    expires_at: Moment | None = Field(
        default=None, description="it may be deleted from then on; null: not as long as something refers to it"
    )


class Storage(Record):
    """What is kept. The files are a page, newest first; the sums are over all."""

    files: int
    bytes: int
    kinds: StorageKinds
    items: list[StoredFile]
    next_cursor: str | None = Field(default=None, description="give it back as `cursor` for the next page")


class FieldProblem(Record):
    field: str
    message: str


class Problem(Record):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[FieldProblem] | None = None
