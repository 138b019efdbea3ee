from typing import Literal

from pydantic import Field

from flashcards.contract.base import Record
from flashcards.contract.image import PixelRange, Shape

CardDtype = Literal["float32", "uint8"]
Source = Literal["maze", "auto"]


class Recipe(Record):
    """Everything needed to make a set of cards again, bit for bit on the same build and CPU type."""

    model_digest: str
    source: str
    seed: int
    r: int
    count: int
    input: Shape
    range: PixelRange
    dtype: CardDtype
    backend: str = Field(description="what ran the passes, with its version", examples=["torch-2.13.0+cpu-cpu"])
    threads: int
    chunk: int = Field(description="cards a forward pass; the last chunk is padded to it")
    maze_version: int | None = Field(default=None, description="changes when the same seed would give other patterns")
