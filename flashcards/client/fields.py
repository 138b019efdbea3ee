"""The fields of each job spec, for editors and type checkers. Defaults and limits are the contract's.

What a job reads is named by its id, or by the thing itself as the client gave it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from pydantic_core import to_jsonable_python

from flashcards.contract.architecture import Architecture
from flashcards.contract.recipe import CardDtype, Source
from flashcards.contract.resources import Dataset, Flashcards, Model
from flashcards.contract.specs import Budget, Jitter, Scenario
from flashcards.contract.strategies import Strategy
from flashcards.contract.tracking import Tracking


class Fields(TypedDict, total=False):
    labels: dict[str, str]
    device: Literal["auto", "cpu", "gpu"]
    timeout_seconds: int | None
    max_attempts: int
    announce: str | None
    tracking: Tracking | Mapping[str, Any] | None


class LessonFields(Fields, total=False):
    epochs: int
    batch_size: int
    learning_rate: float
    optimizer: Literal["adam", "sgd"]
    decay: float
    validation_share: float
    patience: int


class TeachingFields(LessonFields, total=False):
    name: str | None
    seed: int


class LearningFields(TeachingFields, total=False):
    architecture: str | Architecture | Mapping[str, Any]


class TaskFields(TeachingFields, total=False):
    dataset: Required[str | Dataset]
    test_dataset: str | Dataset | None
    strategy: Strategy | Mapping[str, Any]
    jitter: Jitter | Mapping[str, float] | None
    autoencoder_epochs: int | None
    max_forgetting: Budget | Mapping[str, float] | None
    base_version: int | None


class CompareFields(LessonFields, total=False):
    datasets: Required[list[str | Dataset]]
    strategies: Required[list[Strategy | Mapping[str, Any]]]
    seeds: list[int]
    architecture: str | Architecture | Mapping[str, Any]
    autoencoder_architecture: str | Architecture | Mapping[str, Any] | None
    autoencoder_epochs: int | None
    range: tuple[float, float]
    scenario: Scenario
    jitters: list[Jitter | Mapping[str, float]] | None
    noise: float
    clip: bool


class ImportFields(TypedDict, total=False):
    """Beside the reference; what is null is taken from the file."""

    name: str | None
    file: str | None
    architecture: str | Architecture | Mapping[str, Any] | None
    input: str | Sequence[int] | None
    range: Sequence[float] | Sequence[str] | None


class TrainFields(LearningFields, total=False):
    """Beside the dataset."""

    range: tuple[float, float]
    through: str | Model | None


class DistillFields(LearningFields, total=False):
    """Beside the flashcards."""

    dataset: str | Dataset | None


class AnalyzeFields(Fields, total=False):
    """Beside the model."""

    max_r: int
    count: int
    source: Source
    seed: int
    dataset: str | Dataset | None
    retrain: list[int]
    retrain_epochs: int


class CaptureFields(Fields, total=False):
    """Beside the model."""

    count: int
    r: int | Literal["auto"]
    source: Source
    seed: int
    dtype: CardDtype
    materialise: bool
    backend: str | None
    shards: int | Literal["auto"]
    name: str | None


class EvaluateFields(Fields, total=False):
    model: str | Model | None
    flashcards: str | Flashcards | None
    dataset: Required[str | Dataset]
    split: Literal["auto", "train", "test"]


class PredictFields(Fields, total=False):
    """Beside the model."""

    dataset: Required[str | Dataset]
    split: Literal["auto", "train", "test"]
    rows: list[int] | None
    limit: int


class ExportFields(Fields, total=False):
    """Beside the model."""

    format: Literal["onnx"]


def as_body(fields: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON, with the ids of things in their place."""
    return {name: to_jsonable_python(_by_id(value)) for name, value in fields.items()}


def _by_id(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_by_id(each) for each in value]
    return value.id if isinstance(value, Model | Dataset | Flashcards) else value
