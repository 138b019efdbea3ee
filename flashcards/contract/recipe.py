from typing import Any, Literal

from pydantic import Field, model_validator

from flashcards.contract.base import Record
from flashcards.contract.image import PixelRange, Shape

CardDtype = Literal["float32", "uint8"]
Source = Literal["auto", "maze", "geometric", "noise", "latent", "capsule"]
#: Their cards start as images, and are cards only once they have been through the network.
IMAGE_SOURCES = ("maze", "geometric", "noise")


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
    source_version: int | None = Field(default=None, description="changes when the same seed would start other cards")
    latent_scale: float | None = Field(default=None, description="deviation of random latents, found without data")
    by_class: bool = Field(default=False, description="latents were drawn class by class, in turn")
    capsule_digest: str | None = Field(default=None, description="SHA-256 of the capsule that latents were drawn from")

    @model_validator(mode="before")
    @classmethod
    def _an_older_name(cls, value: Any) -> Any:
        """Recipes on record from when mazes were the only source."""
        if isinstance(value, dict) and "maze_version" in value:
            value = {**value, "source_version": value["maze_version"]}
            del value["maze_version"]
        return value
