"""A learner: a network that learns task after task. Each finished task makes a version; nothing is ever overwritten."""

from typing import Literal, Self

from pydantic import Field, model_validator

from flashcards.contract.ancestry import Imported
from flashcards.contract.architecture import Architecture, ArchitectureField
from flashcards.contract.base import DatasetId, JobId, LearnerId, ModelId, Moment, Name, Record
from flashcards.contract.image import PixelRange, Shape
from flashcards.contract.recipe import Recipe
from flashcards.contract.results import Memory, TaskMeasure
from flashcards.contract.specs import CLASSIFY, Scenario, first_architecture, first_autoencoder
from flashcards.contract.strategies import StrategyField


class LearnerSpec(Record):
    """From a model, whose knowledge is then the first to be kept, or from an architecture, which knows nothing yet.

    In task_incremental and new_instance what learns is a classifier, with an autoencoder beside it that makes cards.
    """

    name: Name | None = None
    model: ModelId | None = Field(default=None, description="reconstruction, denoising: an autoencoder to begin with")
    classifier: ModelId | None = Field(default=None, description="classification: a classifier to begin with")
    autoencoder: ModelId | None = Field(default=None, description="and the autoencoder that makes cards for it")
    architecture: ArchitectureField | None = Field(
        default=None,
        description="else blk_4_fil_32, in task_incremental tasknet, in new_instance resnet18, or the model's; a "
        "classifier's heads may be left to the tasks",
    )
    autoencoder_architecture: ArchitectureField | None = Field(
        default=None, description="classification: of the network that makes cards, else one that fits the classifier"
    )
    range: PixelRange | None = Field(default=None, description="else 0,1, or the model's")
    scenario: Scenario = "reconstruction"
    noise: float = Field(
        default=0.1, gt=0, le=1, description="denoising: deviation of what is added, the range being 1"
    )
    clip: bool = Field(default=True, description="denoising: noisy images are cut to the range")

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if self.model is not None and (self.architecture is not None or self.range is not None):
            raise ValueError("a learner from a model has the model's architecture and range: name the model alone")
        return self

    @model_validator(mode="after")
    def _networks_of_the_scenario(self) -> Self:
        beside = (self.classifier, self.autoencoder, self.autoencoder_architecture)
        if not self.classifies and any(each is not None for each in beside):
            raise ValueError(f"a learner of scenario {self.scenario} is one autoencoder: name it as `model`")
        if self.classifies and self.model is not None:
            raise ValueError("a learner of classes begins with `classifier` and `autoencoder`, not with `model`")
        if (self.classifier is None) != (self.autoencoder is None):
            raise ValueError("name `classifier` and `autoencoder` together: cards for the one come from the other")
        told = (self.architecture, self.autoencoder_architecture, self.range)
        if self.classifier is not None and any(each is not None for each in told):
            raise ValueError("a learner from models has their architectures and range: name the models alone")
        return self

    @property
    def classifies(self) -> bool:
        return self.scenario in CLASSIFY

    @property
    def first_architecture(self) -> Architecture:
        return self.architecture or first_architecture(self.scenario)

    @property
    def first_autoencoder(self) -> Architecture | None:
        if not self.classifies:
            return None
        return self.autoencoder_architecture or first_autoencoder(self.first_architecture)


class Learner(Record):
    id: LearnerId
    name: str
    model: ModelId | None = Field(default=None, description="where it began, if not from nothing")
    autoencoder: ModelId | None = Field(default=None, description="classification: where its card maker began")
    compare: JobId | None = Field(default=None, description="the comparison that it belongs to, and goes with")
    scenario: Scenario
    noise: float | None = Field(default=None, description="null where nothing is added")
    clip: bool
    architecture: ArchitectureField
    architecture_name: str
    autoencoder_architecture: ArchitectureField | None = Field(
        default=None, description="classification: of the network that makes cards"
    )
    input: Shape | None = Field(default=None, description="null until the first task says")
    range: PixelRange
    version: int | None = Field(default=None, description="the one the next task starts from; null: none yet")
    tasks: list[str] = Field(description="what it knows, in order")
    keeps_data: bool = Field(description="its strategy keeps images of earlier tasks")
    memory: Memory | None = None
    network_mb: float | None = Field(default=None, description="of memory, in 10^6 bytes: the network")
    external_mb: float | None = Field(default=None, description="of memory, in 10^6 bytes: all that is beside it")
    created_at: Moment


class Version(Record):
    learner: LearnerId
    number: int
    parent: int | None = Field(description="the version that the task started from")
    task: str = Field(description="what was learnt")
    dataset: DatasetId | None = Field(default=None, description="what it was learnt from; it may be gone")
    test_dataset: DatasetId | None = None
    repeated: bool = Field(default=False, description="the learner had learnt from this very dataset before")
    job: JobId | None = None
    strategy: StrategyField | None = Field(default=None, description="null for the model that a learner began with")
    digest: str = Field(description="SHA-256 of its weights")
    size: int
    architecture: ArchitectureField | None = Field(
        default=None, description="where it differs from the learner's: with the heads of the tasks so far"
    )
    autoencoder_digest: str | None = Field(default=None, description="SHA-256 of the weights of what makes cards")
    capsules: list[str | None] = Field(description="SHA-256 of each task's capsule, refreshed for these weights")
    measures: list[TaskMeasure]
    recipes: list[Recipe]
    memory: Memory
    keeps_data: bool
    seconds: float | None = None
    created_at: Moment


class Matrix(Record):
    """M[i][j], the error on task j after task i, of classes the accuracy. Null: no test images to say it with."""

    learner: LearnerId
    version: int | None
    tasks: list[str]
    versions: list[int]
    metric: Literal["mae", "accuracy"] = "mae"
    matrix: list[list[float | None]]
    matrix_without_task_id: list[list[float | None]] | None = Field(
        default=None, description="task_incremental: where nobody says which task an image is of"
    )
    estimated: list[list[float | None]] = Field(description="the same without any image, from cards")
    average: float | None = Field(description="mean of the last row")
    average_without_task_id: float | None = None
    bwt: float | None = Field(
        description="mean of M[i][i] - M[T][i], of accuracies M[T][i] - M[i][i]: below zero, it forgot"
    )
    forgetting: float | None = Field(
        default=None, description="of accuracies: how far each task fell from the best it ever was, mean over the tasks"
    )
    fwt: float | None = Field(description="mean of r_i - M[i-1][i], r being a network that learnt nothing")
    psnr: list[list[float | None]]
    ssim: list[list[float | None]]
    ece: list[list[float | None]] = Field(default=[], description="of accuracies: how far confidence is off")
    random: list[float | None] = Field(description="r_i")
    before: list[float | None] = Field(description="M[i-1][i]")
    memory: Memory | None
    network_mb: float | None = Field(default=None, description="of memory, in 10^6 bytes: the network")
    external_mb: float | None = Field(default=None, description="of memory, in 10^6 bytes: all that is beside it")
    seconds: float | None = Field(description="of all trainings that led here")


class LearnerLineage(Record):
    """Where a learner came from."""

    learner: LearnerId
    made_from: list[ModelId] = Field(description="the models that it began with")
    imported: Imported | None = Field(default=None, description="what the bundle says that brought it, if one did")


class Rollback(Record):
    version: int = Field(ge=0, lt=2**63, description="the version that the next task is to start from")
