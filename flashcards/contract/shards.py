"""A large capture as several: what its first step decides for all shards, and what each of them came to."""

from pydantic import Field

from flashcards.contract.base import Record
from flashcards.contract.recipe import Recipe


class Shard(Record):
    first: int = Field(ge=0, description="number of its first card, which begins a chunk")
    count: int = Field(ge=1)


class Split(Record):
    """Source, r, backend and threads are those of the recipe in every shard: the set is of one make."""

    recipe: Recipe
    shards: list[Shard]


class CardSteps(Record):
    """Of the cards of one shard, at each pass."""

    gamma1: list[float]
    gamma2: list[float]
    sums: list[list[float]] = Field(description="their exact sum, as floats that do not overlap")


class ShardResult(Record):
    first: int
    cards: int
    steps: CardSteps
    seconds: float
    processor: str = Field(description="what the worker runs on: other types may give other last digits")
