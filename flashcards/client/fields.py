"""The fields of each job spec, for editors and type checkers. Defaults and limits are the contract's."""

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict

from flashcards.contract.architecture import Architecture
from flashcards.contract.recipe import CardDtype, Source
from flashcards.contract.specs import Budget, Jitter, Scenario
from flashcards.contract.strategies import Strategy


class Fields(TypedDict, total=False):
    labels: dict[str, str]
    device: Literal["auto", "cpu", "gpu"]
    timeout_seconds: int | None
    max_attempts: int


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
    dataset: Required[str]
    test_dataset: str | None
    strategy: Strategy | Mapping[str, Any]
    jitter: Jitter | Mapping[str, float] | None
    autoencoder_epochs: int | None
    max_forgetting: Budget | Mapping[str, float] | None
    base_version: int | None


class CompareFields(LessonFields, total=False):
    datasets: Required[list[str]]
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


class TrainFields(LearningFields, total=False):
    dataset: Required[str]
    range: tuple[float, float]
    through: str | None


class DistillFields(LearningFields, total=False):
    flashcards: Required[str]
    dataset: str | None


class AnalyzeFields(Fields, total=False):
    model: Required[str]
    max_r: int
    count: int
    source: Source
    seed: int
    dataset: str | None
    retrain: list[int]
    retrain_epochs: int


class CaptureFields(Fields, total=False):
    model: Required[str]
    count: int
    r: int | Literal["auto"]
    source: Source
    seed: int
    dtype: CardDtype
    materialise: bool
    backend: str | None
    name: str | None


class EvaluateFields(Fields, total=False):
    model: str | None
    flashcards: str | None
    dataset: Required[str]
    split: Literal["auto", "train", "test"]


class PredictFields(Fields, total=False):
    model: Required[str]
    dataset: Required[str]
    split: Literal["auto", "train", "test"]
    rows: list[int] | None
    limit: int
