"""What the service wants of a tracking server. Raises `TrackerAway` and `TrackerRefused`, and nothing else.

Every verb may be said twice: who mirrors a job may be killed between the server's answer and its own note of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape


@dataclass(frozen=True)
class Run:
    """One job, as it begins."""

    job_id: str
    experiment: str
    name: str
    started_at: float
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    """One value of one metric."""

    name: str
    value: float
    step: int
    at: float


@dataclass(frozen=True)
class TrackedModel:
    """A network, and its files by name: `model.safetensors`, and `model.onnx` where that answers as the network does;
    `graph_off_by` is the largest difference that was seen."""

    architecture: Architecture
    input: ImageShape
    range: tuple[float, float]
    made_at: float
    files: Mapping[str, Path]
    graph_off_by: float | None = None


class Tracker(Protocol):
    def is_reachable(self) -> bool: ...

    def close(self) -> None: ...

    def begin(self, run: Run) -> str:
        """Its id: of the run that this job has there, or of a new one."""

    def tell(
        self,
        run_id: str,
        params: Mapping[str, str] | None = None,
        points: Sequence[Point] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None: ...

    def keep(self, run_id: str, name: str, content: Path | bytes) -> None:
        """A file beside the run."""

    def keep_model(self, run_id: str, model: TrackedModel) -> None:
        """In the form that the server's users load models from."""

    def register(self, run_id: str, name: str, tags: Mapping[str, str]) -> str:
        """The model of this run as a version of a registered model; which one."""

    def end(self, run_id: str, state: str, at: float | None) -> None:
        """In words of ours; `running` where it goes on after all."""

    def fetch(self, reference: str, to: Path, tenant: str, file: str | None, most: int) -> str:
        """The weights of a registered model into the file `to`; what they are called there."""
