"""What every dataset comes down to before it is written: splits of images, a batch at a time, and their labels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Values = np.ndarray[Any, np.dtype[Any]]
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


class Size(NamedTuple):
    height: int
    width: int
    channels: int

    def __str__(self) -> str:
        return f"{self.height}x{self.width}x{self.channels}"


@dataclass(frozen=True)
class Part:
    """One split. `labels` is asked once all batches were taken: some formats have them in between."""

    count: int
    batches: Iterator[Values]  # N x H x W x C each
    labels: Callable[[], Iterator[Values]] | None = None
    names: Sequence[str] = ()  # of label 0, 1, ..., where the file tells them
    size: Size | None = None  # None where only the images themselves tell
    itemsize: int = 1  # of a value once it is written


class Wanted(NamedTuple):
    """What the uploader asked for, and what is allowed."""

    max_bytes: int
    max_side: int
    max_channels: int
    suffixes: Sequence[str]
    input: Sequence[int] | None = None
    invert: bool = False
    max_vector: int = 0  # as in `Limits`
    image: str | None = None  # columns of a parquet file
    label: str | None = None
