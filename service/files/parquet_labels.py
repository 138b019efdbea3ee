"""The labels of a parquet file: whole numbers or words, and what they are called."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from service.files.errors import BadFile
from service.files.npz import MAX_CLASSES
from service.files.parts import Values
from service.files.words import quoted

MAX_LABEL = 400
UNFIT = "the parquet file is not a dataset"


def class_names(schema: pa.Schema, label: str | None) -> list[str]:
    """As the Hugging Face libraries keep them, in the metadata of the schema."""
    try:
        told: Any = json.loads((schema.metadata or {})[b"huggingface"])
        names = told["info"]["features"][label]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return []
    good = isinstance(names, list) and all(isinstance(name, str) and name.isprintable() for name in names)
    return [name[:MAX_LABEL] for name in names] if good and len(names) <= MAX_CLASSES else []


class Labels:
    """Whole numbers as they are. Words are numbered in the order of the alphabet, once all of them are known."""

    def __init__(self, told: Sequence[str]) -> None:
        self.names: list[str] = []
        self._told = told
        self._known: dict[str, int] = {}
        self._found: list[Values] = []

    def add(self, column: pa.Array, first: int) -> None:
        if column.null_count:
            raise BadFile(UNFIT, f"between row {first} and {first + len(column) - 1} a label is missing")
        values = column.to_pylist()
        if isinstance(values[0], str):
            self._found.append(np.array([self._number(word) for word in values], "<i8"))
        else:
            self._found.append(np.array([_small(value) for value in values], "<i8"))

    def written(self) -> Iterator[Values]:
        if self._known:
            order = {self._known[word]: place for place, word in enumerate(sorted(self._known))}
            self.names += sorted(self._known)
            for numbers in self._found:
                yield np.array([order[number] for number in numbers.tolist()], "<i8")
            return
        highest = max(int(numbers.max()) for numbers in self._found)
        lowest = min(int(numbers.min()) for numbers in self._found)
        if lowest >= 0 and highest < len(self._told):
            self.names += self._told
        yield from self._found

    def _number(self, word: str) -> int:
        if len(word) > MAX_LABEL or not word.isprintable():
            raise BadFile(
                UNFIT, f"{quoted(word)} is no label: words are printable, and {MAX_LABEL} letters long at most"
            )
        if len(self._known) > MAX_CLASSES:
            raise BadFile(UNFIT, f"there are more than {MAX_CLASSES:,} different labels")
        return self._known.setdefault(word, len(self._known))


def _small(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise BadFile(UNFIT, f"the label {value} is beyond 64 bits")
    return int(value)
