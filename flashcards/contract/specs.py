"""What a job asks for: one schema a kind, told apart by `kind`."""

from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from flashcards.contract.architecture import ArchitectureField, BlkArchitecture
from flashcards.contract.base import DatasetId, ModelId, Name, Record
from flashcards.contract.image import PixelRange
from flashcards.contract.recipe import CardDtype, Source

Seed = Annotated[int, Field(ge=0, lt=2**63, description="same seed, same answer")]
LabelKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
LabelValue = Annotated[str, Field(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=16)]

MAX_CARDS = 1_000_000


class Spec(Record):
    labels: Labels = Field(default={}, description="key-value pairs to find the job by")
    device: Literal["auto", "cpu", "gpu"] = "auto"
    timeout_seconds: int | None = Field(default=None, ge=1, le=30 * 86400, description="running time allowed")
    max_attempts: int = Field(default=3, ge=1, le=20, description="tries in a row without a new resume point")


class TrainSpec(Spec):
    kind: Literal["train"]
    dataset: DatasetId
    architecture: ArchitectureField = BlkArchitecture(blocks=4, filters=64)
    range: PixelRange = Field(
        default=(0.0, 1.0), description="the values the network sees; uint8 images are scaled to it"
    )
    name: Name | None = Field(default=None, description="name of the model it makes")
    epochs: int = Field(default=100, ge=1, le=100_000)
    batch_size: int = Field(default=64, ge=1, le=65_536)
    learning_rate: float = Field(default=1e-3, gt=0, le=10)
    validation_share: float = Field(
        default=0.1, gt=0, lt=1, description="held out to stop early and to pick the best epoch"
    )
    patience: int = Field(
        default=20, ge=1, le=100_000, description="epochs without a better validation error before it stops"
    )
    seed: Seed = 0

    @model_validator(mode="after")
    def _a_sigmoid_ends_at_one(self) -> Self:
        if self.architecture.head == "sigmoid" and (self.range[0] < 0 or self.range[1] > 1):
            raise ValueError("a sigmoid head gives values from 0 to 1 only: take a linear head for this range")
        return self


class CaptureSpec(Spec):
    kind: Literal["capture"]
    model: ModelId
    count: int = Field(default=5000, ge=1, le=MAX_CARDS, description="how many cards")
    r: int = Field(default=10, ge=0, le=1000, description="passes through the network")
    source: Source = Field(default="auto", description="P(M): where cards start")
    seed: Seed = 0
    dtype: CardDtype = "float32"
    name: Name | None = None

    @model_validator(mode="after")
    def _an_image_needs_a_pass(self) -> Self:
        # Every source there is starts from an image: without a pass the pattern would stay what it was, and no card.
        if self.r == 0:
            raise ValueError(
                f"r = 0 would leave the patterns of source {self.source!r} as they are: take r of at least 1"
            )
        return self


class EvaluateSpec(Spec):
    kind: Literal["evaluate"]
    model: ModelId
    dataset: DatasetId
    split: Literal["auto", "train", "test"] = Field(
        default="auto", description="auto: test, else a held-out tenth of train"
    )


class NoopSpec(Spec):
    """Goes the whole way of a job and does nothing: to see that the queue works, and how fast."""

    kind: Literal["noop"]


EngineSpec = Annotated[TrainSpec | CaptureSpec | EvaluateSpec, Field(discriminator="kind")]
JobSpec = Annotated[TrainSpec | CaptureSpec | EvaluateSpec | NoopSpec, Field(discriminator="kind")]
JobKind = Literal["train", "capture", "evaluate", "noop"]
job_spec: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
