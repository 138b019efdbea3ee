"""What a run has done so far, in a file: Ctrl-C, and it goes on from there."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Wanted:
    """A job that the client wants, known to the service by its `Idempotency-Key` and its label."""

    number: int
    kind: str
    variant: int
    cancel: bool
    id: str | None = None


@dataclass
class Met:
    """A trouble that was made."""

    name: str
    kill: bool
    note: str
    recovered_seconds: float | None  # None: the next one came before it had recovered


@dataclass
class State:
    stack: str
    seed: int
    kills: int
    done: int = 0  # troubles of the plan
    jobs: list[Wanted] = field(default_factory=list)
    troubles: list[Met] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)  # what an unbroken run gave
    checks: int = 0
    violations: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # troubles that cannot be made here, and why
    retried: int = 0  # jobs asked for again after a full disk
    asked_again: int = 0  # requests that the client had to repeat
    longest_silence: float = 0.0
    seconds: float = 0.0
    finished: bool = False
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def killed(self) -> int:
        return sum(met.kill for met in self.troubles)

    def save(self, path: Path) -> None:
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(asdict(self), indent=1))
        draft.replace(path)

    @classmethod
    def load(cls, path: Path) -> "State":
        told = json.loads(path.read_text())
        told["jobs"] = [Wanted(**wanted) for wanted in told["jobs"]]
        told["troubles"] = [Met(**met) for met in told["troubles"]]
        return cls(**told)
