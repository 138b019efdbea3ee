"""The fields of each job spec, for editors and type checkers. Defaults and limits are the contract's."""

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict

from flashcards.contract.architecture import Architecture
from flashcards.contract.recipe import CardDtype, Source


class Fields(TypedDict, total=False):
    labels: dict[str, str]
    device: Literal["auto", "cpu", "gpu"]
    timeout_seconds: int | None
    max_attempts: int


class TrainFields(Fields, total=False):
    dataset: Required[str]
    architecture: str | Architecture | Mapping[str, Any]
    range: tuple[float, float]
    name: str | None
    epochs: int
    batch_size: int
    learning_rate: float
    validation_share: float
    patience: int
    seed: int


class CaptureFields(Fields, total=False):
    model: Required[str]
    count: int
    r: int
    source: Source
    seed: int
    dtype: CardDtype
    name: str | None


class EvaluateFields(Fields, total=False):
    model: Required[str]
    dataset: Required[str]
    split: Literal["auto", "train", "test"]
