"""The capsule bundle: a model, or a learner at one of its versions, as one zip that another installation takes in.

    bundle.json     this manifest: what is in the zip, with sizes and digests, and what it is
    *.safetensors   weights and capsules, under the names that the manifest gives them
    lineage.json    `Ancestry`: what led to it, by the ids that it has at home
    recipes.json    of the flashcards that were captured from it
    metrics.json    what the jobs said that made and measured it
    README.md       the model card, for people

Every entry is stored, not compressed: weights hardly shrink, and a byte of a file is a byte of the zip. No image is in
it: neither datasets nor probes, nor what a strategy keeps beside capsules.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from flashcards.contract.ancestry import Digest, ForeignId, Words
from flashcards.contract.architecture import ArchitectureField
from flashcards.contract.base import Moment, Name, Record
from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.image import PixelRange, Shape
from flashcards.contract.learners import Learner
from flashcards.contract.recipe import Recipe
from flashcards.contract.resources import Model
from flashcards.contract.results import Memory, TaskMeasure
from flashcards.contract.specs import Scenario
from flashcards.contract.strategies import StrategyField

FORMAT, VERSION = "flashcards-bundle", 1
MANIFEST, CARD = "bundle.json", "README.md"
LINEAGE, RECIPES, METRICS = "lineage.json", "recipes.json", "metrics.json"
MOST_VERSIONS = 100
MOST_TEXT = 400_000  # bytes of each JSON file

FileName = Annotated[str, Field(pattern=r"^(?:[a-z0-9][a-z0-9_-]{0,40}/){0,2}[A-Za-z0-9][A-Za-z0-9_.-]{0,60}$")]


class BundledFile(Record):
    size: int = Field(ge=0)
    digest: Digest


class BundledModel(Record):
    """A model as it is at home."""

    id: ForeignId
    name: Name
    architecture: ArchitectureField
    input: Shape
    range: PixelRange
    origin: Words = Field(description="how it came to be, in whichever installation that was")
    job: ForeignId | None = None
    created_at: Moment
    weights: FileName
    uploaded_digest: Digest | None = Field(default=None, description="what a capsule may have been measured on")
    capsule: FileName | None = None


class BundledClasses(Record):
    """Of a learner of classes: those of one task."""

    count: int = Field(ge=2, le=100_000)
    lowest: int = Field(default=0, ge=0, lt=2**53)
    names: list[Words] | None = Field(default=None, max_length=10_000)
    dataset: Words | None = None


class BundledVersion(Record):
    number: int = Field(ge=0, lt=2**31)
    parent: int | None = Field(default=None, ge=0, lt=2**31)
    task: Name
    job: ForeignId | None = None
    dataset: ForeignId | None = None
    test_dataset: ForeignId | None = None
    repeated: bool = False
    strategy: StrategyField | None = None
    weights: FileName
    architecture: ArchitectureField | None = None
    autoencoder: FileName | None = None
    classes: BundledClasses | None = None
    capsules: list[FileName | None] = Field(max_length=MOST_VERSIONS, description="one a task so far")
    capsule: CapsuleFacts | None = Field(default=None, description="what its own task left")
    measures: list[TaskMeasure] = Field(max_length=MOST_VERSIONS)
    before: TaskMeasure | None = None
    random_mae: float | None = None
    random_accuracy: float | None = None
    recipes: list[Recipe] = Field(max_length=MOST_VERSIONS)
    memory: Memory
    seconds: float | None = None


class BundledLearner(Record):
    """A learner, along the versions that led to the one that was asked for, which is the last."""

    id: ForeignId
    name: Name
    scenario: Scenario
    noise: float = Field(ge=0, le=1)
    clip: bool
    architecture: ArchitectureField
    autoencoder_architecture: ArchitectureField | None = None
    input: Shape
    range: PixelRange
    created_at: Moment
    versions: list[BundledVersion] = Field(min_length=1, max_length=MOST_VERSIONS)

    @model_validator(mode="after")
    def _one_leads_to_the_next(self) -> Self:
        parent = None
        for place, version in enumerate(self.versions, start=1):
            if version.parent != parent or len(version.capsules) != place or len(version.measures) != place:
                raise ValueError(f"version {version.number} does not follow from the one before it")
            parent = version.number
        if len({version.number for version in self.versions}) != len(self.versions):
            raise ValueError("a version stands in it twice")
        return self


class Bundle(Record):
    """The manifest."""

    format: Literal["flashcards-bundle"]
    version: Literal[1]
    made_by: Words
    made_at: Moment
    files: dict[FileName, BundledFile]
    model: BundledModel | None = None
    learner: BundledLearner | None = None

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if (self.model is None) == (self.learner is None):
            raise ValueError("a bundle holds a model or a learner, one of the two")
        return self

    @property
    def what(self) -> BundledModel | BundledLearner:
        found = self.model or self.learner
        assert found is not None
        return found


class BundleTaken(Record):
    """What a bundle has become: a model, or a learner."""

    model: Model | None = None
    learner: Learner | None = None

    @property
    def made(self) -> Model | Learner:
        found = self.model or self.learner
        assert found is not None
        return found
