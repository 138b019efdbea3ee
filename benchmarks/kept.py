"""Steps that are done once. Each has a folder; what is in it is not done again. The figures of a step outlive its
folder (`benchmarks.records`): where only they are left, the files are made again when a later step needs them.

A whole experiment is walked through twice: first only to count what there is to do, so that progress and the time left
can be told, then to do it.
"""

import functools
import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from filelock import FileLock
from rich.console import Console

from benchmarks.records import Records
from flashcards.contract.image import ImageShape


@dataclass(frozen=True)
class Size:
    images: int = 3000
    tests: int = 1000
    epochs: int = 10
    seeds: tuple[int, ...] = (0, 1, 2)
    side: int = 32
    threads: int = 2
    patience: int = 20
    # Few images want many steps: on 3,000 of them a batch of 64 is still learning when one of 16 is done.
    batch: int = 16
    learning_rate: float = 2e-3

    @property
    def image(self) -> ImageShape:
        return ImageShape(self.side, self.side, 3)

    @property
    def name(self) -> str:
        return f"{self.side}px-{self.images}-{self.epochs}x{self.batch}"


@dataclass(frozen=True)
class Made:
    place: Path
    result: dict[str, Any]
    make_again: Callable[[], None] = lambda: None

    def __getitem__(self, name: str) -> Any:
        """Not a number while the experiment is only walked through."""
        return self.result.get(name, float("nan"))

    @property
    def folder(self) -> Path:
        """With the files of the step in it."""
        self.make_again()
        return self.place

    @property
    def seconds(self) -> float:
        """What the step took when it was done."""
        found: float = self["step_seconds"]
        return found

    @property
    def test_mae(self) -> float:
        found: float = self["test_mae"]
        return found

    @property
    def weighted_alpha(self) -> float:
        found: float = self["weighted_alpha"]
        return found


@dataclass
class Kept:
    """What an experiment has done so far, and how one more step is done."""

    folder: Path
    data: Path
    size: Size
    console: Console = field(default_factory=Console)
    planned: dict[str, float] = field(default_factory=dict)
    planning: bool = False
    kept_only: bool = False  # nothing is done: a step that is not in the record has no figures
    used: dict[str, Made] = field(default_factory=dict)  # the steps that were asked for
    records: Records | None = None
    done: float = 0.0
    spent: float = 0.0

    def __post_init__(self) -> None:
        self.records = self.records or Records(self.folder / "steps")

    def walk(self, experiment: Callable[[Self], None]) -> None:
        self.planning = True
        experiment(self)
        self.planning = False
        self.done = self.spent = 0.0
        experiment(self)

    def keep_picture(self, made: Made, name: str, target: Path) -> bool:
        """Into a report. One that is there already is not made again for its own sake. False: the step has no such."""
        if self.kept_only and not (made.place / name).exists():
            return target.exists()
        if self.planning or (target.exists() and not _done(made.place).exists()):
            return True
        source = made.folder / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        return source.exists()

    def _step(self, key: str, cost: float, make: Callable[[Path], dict[str, Any]]) -> Made:
        folder = self.folder / self.size.name / key
        if self.kept_only and self._known(folder, key) is None:
            return Made(folder, {})
        if self.planning:
            if self._known(folder, key) is None:
                self.planned[key] = cost
            return Made(folder, {})
        result = self._known(folder, key)
        if result is None:
            with _alone(folder):
                result = self._known(folder, key) or self._do_first(folder, key, cost, make)
        self.used[key] = made = Made(folder, result, lambda: self._do_again(folder, key, make))
        return made

    def _known(self, folder: Path, key: str) -> dict[str, Any] | None:
        if key not in self._recorded and _done(folder).exists():
            self._record(key, json.loads(_done(folder).read_text()))
        return self._recorded.get(key)

    @functools.cached_property
    def _recorded(self) -> dict[str, dict[str, Any]]:
        return self.records.read(self.size.name)

    def _record(self, key: str, result: dict[str, Any]) -> None:
        self._recorded[key] = result
        self.records.add(self.size.name, key, result)

    def _do_first(self, folder: Path, key: str, cost: float, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        result = self._do(folder, make)
        self._record(key, result)
        self._tell(key, cost, result["step_seconds"])
        return result

    def _do(self, folder: Path, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """Made apart and moved when it is whole: later steps may lie in the folder already, from before."""
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        began = time.monotonic()
        result = make(part)
        result = {**result, "step_seconds": time.monotonic() - began}
        shutil.copytree(part, folder, dirs_exist_ok=True)
        shutil.rmtree(part)
        _done(folder).write_text(json.dumps(result, indent=1))
        return result

    def _do_again(self, folder: Path, key: str, make: Callable[[Path], dict[str, Any]]) -> None:
        """For its files alone: its figures are known, and stay as they were told."""
        with _alone(folder):
            if _done(folder).exists():
                return
            self.console.print(f"        {key} once more, for its files")
            here, told = self._do(folder, make), self._recorded[key]
        for name in ("test_mae", "validation_mae"):
            if name in told and not math.isclose(here[name], told[name], rel_tol=1e-6):
                self.console.print(f"        {name} is {here[name]:.6f} here, and {told[name]:.6f} in the record")

    def _tell(self, key: str, cost: float, seconds: float) -> None:
        self.done, self.spent = self.done + cost, self.spent + seconds
        whole = sum(self.planned.values())
        left = (whole - self.done) * self.spent / self.done
        self.console.print(f"{100 * self.done / whole:5.1f} %  {key}  {seconds:.0f} s, about {left / 60:.0f} min left")

    def _key(self, made: Made) -> str:
        return made.place.relative_to(self.folder / self.size.name).as_posix().replace("/", "+")


def _alone(folder: Path) -> FileLock:
    """Two commands may be at work on different parts of one report, and want the same step."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(folder.with_name(f"{folder.name}.lock"))


def _done(folder: Path) -> Path:
    """There when all files of a step are."""
    return folder / "result.json"
