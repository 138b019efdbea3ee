"""What the API answers with, as the client reads it."""

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from flashcards.contract.architecture import Architecture
from flashcards.contract.base import DatasetId, FlashcardsId, JobId, ModelId, Record
from flashcards.contract.image import PixelRange, Shape
from flashcards.contract.recipe import Recipe
from flashcards.contract.results import CaptureResult, EvaluateResult, TrainResult
from flashcards.contract.specs import JobKind, JobSpec

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
TERMINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})
Item = TypeVar("Item")


class Page(Record, Generic[Item]):
    items: list[Item]
    next_cursor: str | None = Field(default=None, description="give it back as `cursor` for the next page")


class Model(Record):
    id: ModelId
    name: str
    architecture: Architecture
    architecture_name: str
    input: Shape
    range: PixelRange
    parameters: int
    digest: str
    size: int
    origin: Literal["upload", "train"]
    job: JobId | None = None
    probe: str | None = Field(default=None, description="digest of the probe that every use is checked against")
    created_at: datetime


class Lineage(Record):
    """Where a model came from, and what came of it; newest first, a hundred of each at most."""

    model: ModelId
    job: JobId | None = Field(description="the job that made it; null for an upload")
    made_from: list[str] = Field(description="what that job read")
    flashcards: list[FlashcardsId] = Field(description="captured from it")
    used_by: list[JobId] = Field(description="jobs that read it")


class Split(Record):
    count: int
    shape: Shape
    dtype: str
    low: float
    high: float
    classes: int | None = Field(default=None, description="how many different labels, where there are labels")


class Dataset(Record):
    id: DatasetId
    name: str
    digest: str
    size: int
    format: str
    splits: dict[str, Split]
    created_at: datetime


class Flashcards(Record):
    id: FlashcardsId
    name: str | None = None
    model: ModelId
    job: JobId
    recipe: Recipe
    digest: str
    size: int
    created_at: datetime


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
    started_at: datetime
    ended_at: datetime | None = None
    outcome: str | None = None
    reason: str | None = None


class Artifact(Record):
    name: str
    media_type: str
    digest: str
    size: int
    attempt: int
    created_at: datetime


class JobSummary(Record):
    """A job as lists show it; the item adds what costs a query."""

    id: JobId
    kind: JobKind
    state: JobState
    labels: dict[str, str]
    progress: Progress
    error: Failure | None = None
    result: TrainResult | CaptureResult | EvaluateResult | None = None
    cancel_requested: bool = False
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


class Job(JobSummary):
    spec: JobSpec
    queue: str
    queue_position: int | None = Field(default=None, description="1 is next; null once it is claimed")
    attempts: list[Attempt] = []
    artifacts: list[Artifact] = []


class Event(Record):
    seq: int
    kind: Literal["state", "progress", "log", "resume_point", "note"]
    attempt: int
    at: datetime
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
