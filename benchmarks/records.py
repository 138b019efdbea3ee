"""What finished steps gave, kept in the tree: docs/reproduction/steps, one file a size, one line a step.

The files of a step (weights, cards) stay under .reproduce and are made again by whoever needs them; its figures are
small, so they are kept for good, each with the commit that made it. So a report that takes more hours than one machine
has at a time is made in parts, and everybody sees what its tables are made of.
"""

import argparse
import json
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock

ROOT = Path(__file__).parents[1]
WORKSHOP = ROOT / ".reproduce"
KEPT = ROOT / "docs" / "reproduction" / "steps"
LEFT_OUT = ("recipes", "capsule", "confusion")  # long, and no table shows them

Result = dict[str, Any]


@dataclass(frozen=True)
class Records:
    folder: Path

    def read(self, size: str) -> dict[str, Result]:
        return {line["step"]: line["result"] for line in self._lines(size)}

    def every(self) -> dict[PurePosixPath, Result]:
        """Of all sizes: the size is the first part of a step's name."""
        sizes = sorted(path.stem for path in self.folder.glob("*.jsonl"))
        return {PurePosixPath(size, step): result for size in sizes for step, result in self.read(size).items()}

    def add(self, size: str, step: str, result: Result) -> None:
        path = self._path(size)
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {"step": step, "commit": _commit(), "result": {k: v for k, v in result.items() if k not in LEFT_OUT}}
        # Two commands may be at work on different parts of one report.
        with FileLock(path.with_suffix(".lock")):
            others = [line for line in self._lines(size) if line["step"] != step]
            lines = sorted([*others, told], key=lambda line: line["step"])
            written = path.with_suffix(".new")
            written.write_text("".join(json.dumps(line) + "\n" for line in lines))
            written.replace(path)

    def commits(self, size: str, steps: Collection[str]) -> list[str]:
        """Which made these steps."""
        return sorted({line["commit"] for line in self._lines(size) if line["step"] in steps})

    def link(self, size: str, docs: Path) -> str:
        """For a report in `docs`."""
        path = self._path(size)
        return f"[steps]({path.relative_to(docs).as_posix()})" if path.is_relative_to(docs) else f"`{path.name}`"

    def _lines(self, size: str) -> list[dict[str, Any]]:
        path = self._path(size)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _path(self, size: str) -> Path:
        return self.folder / f"{size}.jsonl"


def add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, default=WORKSHOP, help="where the files of done steps lie")
    parser.add_argument("--records", type=Path, help="where their figures are kept; beside the files, if those move")


def records_of(asked: argparse.Namespace) -> Records:
    return Records(asked.records or (KEPT if asked.folder == WORKSHOP else asked.folder / "steps"))


def _commit() -> str:
    """The tree that is at work; a plus says that its code was not as committed. The docs it writes do not count."""
    commit = _git("describe", "--always", "--abbrev=10")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return f"{commit}{'+' if changed else ''}" if commit else "unknown"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
