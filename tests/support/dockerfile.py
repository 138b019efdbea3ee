"""Reads a Dockerfile as far as its tests need: stages, what they inherit, what stands in their instructions."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    word: str
    value: str

    def words(self) -> list[str]:
        """Of the JSON form (`CMD ["a", "b"]`), or as a shell would split them."""
        return json.loads(self.value) if self.value.startswith("[") else shlex.split(self.value)


@dataclass(frozen=True)
class Stage:
    name: str
    base: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Dockerfile:
    stages: dict[str, Stage]

    def inherited(self, name: str) -> list[Instruction]:
        """What makes up a stage, that of its bases first."""
        stage = self.stages[name]
        before = self.inherited(stage.base) if stage.base in self.stages else []
        return [*before, *stage.instructions]

    def last(self, name: str, word: str) -> Instruction | None:
        found = [instruction for instruction in self.inherited(name) if instruction.word == word]
        return found[-1] if found else None

    def environment(self, name: str) -> dict[str, str]:
        pairs = [pair for step in self.inherited(name) if step.word == "ENV" for pair in shlex.split(step.value)]
        return dict(pair.split("=", 1) for pair in pairs)


def parse(text: str) -> Dockerfile:
    arguments: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    name = ""
    for step in _instructions(text):
        if step.word == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", step.value).groups()
            base = re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], base)
            stages[name] = Stage(name, base, ())
        elif not name:
            arguments.update([step.value.split("=", 1)])
        else:
            stages[name] = Stage(name, stages[name].base, (*stages[name].instructions, step))
    return Dockerfile(stages)


def _instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Instruction(*line.split(None, 1)) for line in joined.splitlines()]


def is_left_out(path: str, ignore: str) -> bool:
    """Whether .dockerignore keeps it from the builder: the last pattern that fits it or a folder above it decides."""
    parts = Path(path).parts
    candidates = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    left_out = False
    for line in ignore.splitlines():
        pattern = line.strip().removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        form = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(form, candidate) for candidate in candidates):
            left_out = not line.startswith("!")
    return left_out
