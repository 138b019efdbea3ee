"""What led to a model that a bundle carries, by the ids of the installation that made the bundle."""

from typing import Annotated, Any

from pydantic import Field

from flashcards.contract.base import Moment, Record
from flashcards.contract.recipe import Recipe

MOST_ANCESTORS = 100

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
#: Of an installation that is not this one: nothing here answers to it.
ForeignId = Annotated[str, Field(pattern=r"^[a-z]{1,20}_[0-9a-f]{32}$")]
Words = Annotated[str, Field(max_length=200)]


class AncestorJob(Record):
    id: ForeignId
    kind: Words
    spec: dict[str, Any]
    made_from: list[ForeignId] = Field(description="what it read")
    ended_at: Moment | None = None


class AncestorModel(Record):
    id: ForeignId
    name: Words
    architecture: dict[str, Any]
    input: Words
    digest: Digest
    origin: Words
    job: ForeignId | None = None


class AncestorDataset(Record):
    id: ForeignId
    name: Words
    digest: Digest
    splits: dict[Words, int] = Field(description="how many images each has")


class AncestorCards(Record):
    """A set of flashcards; from its recipe it can be made again."""

    id: ForeignId
    name: Words | None = None
    model: ForeignId
    job: ForeignId
    recipe: Recipe
    digest: Digest | None = None


class Ancestry(Record):
    """What led to a model, from the last step back; a hundred of each at most. What is gone has only its id."""

    jobs: list[AncestorJob] = Field(default=[], max_length=MOST_ANCESTORS)
    models: list[AncestorModel] = Field(default=[], max_length=MOST_ANCESTORS)
    datasets: list[AncestorDataset] = Field(default=[], max_length=MOST_ANCESTORS)
    flashcards: list[AncestorCards] = Field(default=[], max_length=MOST_ANCESTORS)


class Recipes(Record):
    flashcards: list[AncestorCards] = Field(default=[], max_length=MOST_ANCESTORS)


class Measured(Record):
    """What a job said."""

    job: ForeignId
    kind: Words
    made_from: list[ForeignId] = []
    result: dict[str, Any]


class BundledMetrics(Record):
    jobs: list[Measured] = Field(default=[], max_length=MOST_ANCESTORS)


class Imported(Record):
    """Where something came from that a bundle brought. Ids are those of the installation that made the bundle."""

    bundle: Digest = Field(description="SHA-256 of the bundle")
    made_by: str
    made_at: Moment
    id: ForeignId
    name: str
    model: AncestorModel | None = Field(default=None, description="as it is there; null of a learner")
    lineage: Ancestry
    recipes: list[AncestorCards]
    metrics: list[Measured]
