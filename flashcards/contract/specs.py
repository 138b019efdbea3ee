"""What a job asks for: one schema a kind, told apart by `kind`."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from flashcards.contract.architecture import (
    Architecture,
    ArchitectureField,
    BlkArchitecture,
    ResnetArchitecture,
    TasknetAeArchitecture,
    TasknetArchitecture,
    VaeArchitecture,
)
from flashcards.contract.base import DatasetId, FlashcardsId, LearnerId, ModelId, Name, QueueName, Record
from flashcards.contract.families.base import AutoencoderFamily
from flashcards.contract.image import PixelRange
from flashcards.contract.recipe import IMAGE_SOURCES, CardDtype, Recipe, Source
from flashcards.contract.strategies import Flashcards, Strategy, StrategyField, called
from flashcards.contract.tracking import Tracking

Seed = Annotated[int, Field(ge=0, lt=2**63, description="same seed, same answer")]
LabelKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
LabelValue = Annotated[str, Field(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=16)]

MAX_CARDS = 1_000_000
MAX_TASKS = 500  # of one compare
MAX_PREDICTED = 256  # images of one predict: more are what evaluate is for
MAX_SHARDS = 64
ADAM_RATE = 1e-3  # the paper's, where nothing else is said
Scenario = Literal["reconstruction", "denoising", "task_incremental", "new_instance"]
REGISTERED = ("train", "distill", "learn")  # kinds that make a model
CLASSIFY = ("task_incremental", "new_instance")  # the learner says what images show


BEYOND_SIGMOID = "a sigmoid head gives values from 0 to 1 only: take a linear head for this range"


def sigmoid_beyond(architecture: Architecture, bounds: tuple[float, float]) -> bool:
    """Can this network not give back what these bounds allow?"""
    sigmoid = isinstance(architecture, AutoencoderFamily) and architecture.head == "sigmoid"
    return sigmoid and (bounds[0] < 0 or bounds[1] > 1)


def first_architecture(scenario: Scenario) -> Architecture:
    """What a learner begins with where nobody says: the paper's network of the scenario, or a fast one for images."""
    match scenario:
        case "task_incremental":
            return TasknetArchitecture(family="tasknet")
        case "new_instance":
            return ResnetArchitecture(family="resnet18")
        case _:
            return BlkArchitecture(blocks=4, filters=32)


def first_autoencoder(architecture: Architecture) -> Architecture:
    """The one beside a classifier: with the same encoder where there is such a family, else the paper's of sessions."""
    if isinstance(architecture, TasknetArchitecture):
        sizes = {field: getattr(architecture, field) for field in ("width", "hidden", "latent")}
        return TasknetAeArchitecture(family="tasknet_ae", **sizes)
    return BlkArchitecture(blocks=4, filters=64)


class Spec(Record):
    labels: Labels = Field(default={}, description="key-value pairs to find the job by")
    device: Literal["auto", "cpu", "gpu"] = "auto"
    timeout_seconds: int | None = Field(default=None, ge=1, le=30 * 86400, description="running time allowed")
    max_attempts: int = Field(default=3, ge=1, le=20, description="tries in a row without a new resume point")
    announce: QueueName | None = Field(
        default=None, description="a queue of the broker on which the end of the job is announced"
    )
    tracking: Tracking | None = Field(
        default=None, description="null: mirrored as the service does, where it has a tracking server"
    )

    @model_validator(mode="after")
    def _only_a_model_is_registered(self) -> Self:
        kind = getattr(self, "kind", "learn")  # the body of a task has none, and becomes a learn
        if self.tracking is not None and self.tracking.register_as is not None and kind not in REGISTERED:
            raise ValueError(f"`register_as` is for jobs that make a model ({', '.join(REGISTERED)}), not for {kind}")
        return self


class LessonSpec(Spec):
    """What teaching takes, whoever learns whatever."""

    epochs: int = Field(default=100, ge=1, le=100_000)
    batch_size: int = Field(default=64, ge=1, le=65_536)
    learning_rate: float = Field(default=1e-3, gt=0, le=10)
    optimizer: Literal["adam", "sgd"] = Field(default="adam", description="sgd: with a momentum of 0.9")
    decay: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="share of the epochs, at the end, over which the learning rate falls to 0; 0: it stays",
    )
    validation_share: float = Field(
        default=0.1, gt=0, lt=1, description="held out to stop early and to pick the best epoch"
    )
    patience: int = Field(
        default=20, ge=1, le=100_000, description="epochs without a better validation error before it stops"
    )

    @property
    def adam_rate(self) -> float:
        """Of a network beside the learner that Adam teaches: a rate of SGD, often ten times as high, is none for it."""
        return self.learning_rate if self.optimizer == "adam" else ADAM_RATE


class TeachingSpec(LessonSpec):
    seed: Seed = 0


class LearningSpec(TeachingSpec):
    """What teaching a new network takes, whatever it learns from."""

    architecture: ArchitectureField = BlkArchitecture(blocks=4, filters=64)
    name: Name | None = Field(default=None, description="name of the model it makes")


class TrainSpec(LearningSpec):
    """An autoencoder learns to give images back, a classifier to say their labels."""

    kind: Literal["train"]
    dataset: DatasetId
    range: PixelRange = Field(
        default=(0.0, 1.0), description="the values the network sees; uint8 images are scaled to it"
    )
    through: ModelId | None = Field(
        default=None,
        description="a classifier only: learns from what this autoencoder makes of the images; tests see the originals",
    )

    @model_validator(mode="after")
    def _a_sigmoid_ends_at_one(self) -> Self:
        if sigmoid_beyond(self.architecture, self.range):
            raise ValueError(BEYOND_SIGMOID)
        return self

    @model_validator(mode="after")
    def _only_a_classifier_learns_through_another(self) -> Self:
        if self.through is not None and self.architecture.task != "classify":
            raise ValueError(f"`through` is for classifiers, and {self.architecture.name} is an autoencoder")
        return self


Passes = Annotated[int, Field(ge=0, le=1000)]
Shards = Annotated[int, Field(ge=1, le=MAX_SHARDS)]


class CaptureSpec(Spec):
    kind: Literal["capture"]
    model: ModelId
    count: int = Field(default=5000, ge=1, le=MAX_CARDS, description="how many cards")
    r: Passes | Literal["auto"] = Field(
        default="auto", description="passes through the network; auto: what source and capsule speak for"
    )
    source: Source = Field(default="auto", description="P(M): where cards start; auto: the best this model allows")
    seed: Seed = 0
    dtype: CardDtype = "float32"
    materialise: bool = Field(default=True, description="false: keep the recipe and the digest, not the cards")
    backend: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+:-]{0,99}$",
        description="what a recipe says ran the passes, to make its cards again; null: the fastest here, measured",
    )
    shards: Shards | Literal["auto"] = Field(
        default="auto",
        description="parts that workers make beside each other, the same cards in all; auto: one for each idle worker "
        "where there is enough to do, 1: never split",
    )
    name: Name | None = None

    @model_validator(mode="after")
    def _an_image_needs_a_pass(self) -> Self:
        # Without a pass a pattern would stay what it was, and be no card.
        if self.r == 0 and self.source in IMAGE_SOURCES:
            raise ValueError(
                f"r = 0 would leave the patterns of source {self.source!r} as they are: take r of at least 1"
            )
        return self


class ShardSpec(Spec):
    """A part of a large capture, made by it and not to be asked for: cards `first` to `first + count - 1`."""

    kind: Literal["shard"]
    model: ModelId
    recipe: Recipe
    first: int = Field(ge=0)
    count: int = Field(ge=1, le=MAX_CARDS)

    @property
    def dtype(self) -> CardDtype:
        return self.recipe.dtype


class DistillSpec(LearningSpec):
    """Algorithm 3 of the paper: a network of any architecture, taught by cards alone."""

    kind: Literal["distill"]
    flashcards: FlashcardsId
    dataset: DatasetId | None = Field(
        default=None, description="images to compare the new network with its parent on; it learns nothing from them"
    )


class AnalyzeSpec(Spec):
    """What each further pass does to cards, and how many of them to take."""

    kind: Literal["analyze"]
    model: ModelId
    max_r: int = Field(default=50, ge=1, le=1000, description="passes to look at")
    count: int = Field(default=1000, ge=16, le=20_000, description="cards to look at")
    source: Source = Field(default="maze", description="P(M): where cards start")
    seed: Seed = 0
    dataset: DatasetId | None = Field(
        default=None, description="images to measure against; without, the model's capsule serves"
    )
    retrain: list[Passes] = Field(
        default=[], max_length=20, description="teach a new network from the cards of each of these r"
    )
    retrain_epochs: int = Field(default=15, ge=1, le=1000)

    @model_validator(mode="after")
    def _a_curve_needs_images(self) -> Self:
        if self.retrain and self.dataset is None:
            raise ValueError("the networks of `retrain` are tested on a dataset: name one")
        if any(r > self.max_r for r in self.retrain):
            raise ValueError(f"`retrain` asks for cards beyond max_r = {self.max_r}")
        return self


class EvaluateSpec(Spec):
    """A model on images; or flashcards against the images that their model learnt from."""

    kind: Literal["evaluate"]
    model: ModelId | None = None
    flashcards: FlashcardsId | None = None
    dataset: DatasetId
    split: Literal["auto", "train", "test"] = Field(
        default="auto", description="auto: test, else a held-out tenth of train"
    )

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if (self.model is None) == (self.flashcards is None):
            raise ValueError("name a model or flashcards, one of the two")
        return self


class PredictSpec(Spec):
    """A few images in, answers out: reconstructions of an autoencoder, class scores of a classifier."""

    kind: Literal["predict"]
    model: ModelId
    dataset: DatasetId
    split: Literal["auto", "train", "test"] = Field(default="auto", description="auto: test, else train")
    rows: list[Annotated[int, Field(ge=0, lt=2**63)]] | None = Field(
        default=None, min_length=1, max_length=MAX_PREDICTED, description="which images of the split; null: the first"
    )
    limit: int = Field(default=16, ge=1, le=MAX_PREDICTED, description="without rows: how many of the first")


class ExportSpec(Spec):
    """A model as a file that other tools run, held against our own forward pass before it goes out."""

    kind: Literal["export"]
    model: ModelId
    format: Literal["onnx"] = "onnx"


class Budget(Record):
    """How much worse any earlier task may become. Broken: tried once more, then undone."""

    absolute: float | None = Field(
        default=None, gt=0, description="of mean |f(x) - x|; in classification, of the share of wrong answers"
    )
    relative: float | None = Field(default=None, gt=0, description="0.1: a tenth worse than before the task")

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if (self.absolute is None) == (self.relative is None):
            raise ValueError("give it as absolute or as relative, one of the two")
        return self


class Jitter(Record):
    """What is done to the images of a session before they are learnt. Those that it is measured on stay as they are."""

    brightness: float = Field(
        default=0.0, ge=-1, le=1, description="x + b, the range being 1: -0.2 is darker by a fifth of it"
    )
    saturation: float = Field(default=0.0, ge=-1, le=1, description="grey + (x - grey) (1 + s): -1 has no colours left")


class TaskSpec(TeachingSpec):
    """The next thing a learner learns: the body of `POST /v1/learners/{id}/tasks`."""

    name: Name | None = Field(default=None, description="what the task is called; else as its dataset")
    dataset: DatasetId
    test_dataset: DatasetId | None = Field(
        default=None, description="its test split is what the task is measured on; else that of `dataset`"
    )
    strategy: StrategyField = Flashcards()
    jitter: Jitter | None = Field(default=None, description="new_instance: how the light of this session differs")
    autoencoder_epochs: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="classification, flashcards: of the network that makes cards; null: half as many as `epochs`",
    )
    max_forgetting: Budget | None = None
    base_version: int | None = Field(
        default=None, ge=0, lt=2**63, description="the version to start from; null: the newest when its turn comes"
    )


class LearnSpec(TaskSpec):
    kind: Literal["learn"]
    learner: LearnerId


class CompareSpec(LessonSpec):
    """Strategies on the same sequence of tasks: each with each seed is a learner of its own, which learns them all."""

    kind: Literal["compare"]
    datasets: list[DatasetId] = Field(min_length=2, max_length=20, description="the tasks, in order")
    strategies: list[StrategyField] = Field(min_length=1, max_length=20)
    seeds: list[Seed] = Field(default=[0], min_length=1, max_length=100, description="one learner a strategy for each")
    architecture: ArchitectureField = Field(
        default=BlkArchitecture(blocks=4, filters=32),
        description="of every learner, in classification else tasknet or resnet18; where it is a blk, cl_vae takes the "
        "vae of the same blocks and filters",
    )
    autoencoder_architecture: ArchitectureField | None = Field(
        default=None, description="classification: of the network that makes cards"
    )
    range: PixelRange = Field(
        default=(0.0, 1.0), description="the values the networks see; uint8 images are scaled to it"
    )
    scenario: Scenario = "reconstruction"
    jitters: list[Jitter] | None = Field(
        default=None, description="new_instance: how the light of each session differs, one a dataset"
    )
    autoencoder_epochs: int | None = Field(default=None, ge=1, le=100_000, description="as of a task")
    noise: float = Field(
        default=0.1, gt=0, le=1, description="denoising: deviation of what is added, the range being 1"
    )
    clip: bool = Field(default=True, description="denoising: noisy images are cut to the range")

    @model_validator(mode="before")
    @classmethod
    def _a_network_for_the_scenario(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("scenario") in CLASSIFY and value.get("architecture") is None:
            return {**value, "architecture": first_architecture(value["scenario"])}
        return value

    @model_validator(mode="after")
    def _a_jitter_a_session(self) -> Self:
        if self.jitters is None:
            return self
        if self.scenario != "new_instance":
            raise ValueError("jitters are for scenario new_instance, whose sessions differ in light")
        if len(self.jitters) != len(self.datasets):
            raise ValueError(f"{len(self.jitters)} jitters for {len(self.datasets)} datasets: give one a dataset")
        return self

    @model_validator(mode="after")
    def _no_two_are_the_same(self) -> Self:
        for field, values in (("strategies", self.strategies), ("seeds", self.seeds)):
            twice = next((value for place, value in enumerate(values) if value in values[:place]), None)
            if twice is not None:
                what = twice if isinstance(twice, int) else called(twice)
                raise ValueError(f"{what} is there twice in {field}: it would give the same numbers again")
        return self

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if self.tasks > MAX_TASKS:
            factors = f"{len(self.datasets)} datasets x {len(self.strategies)} strategies x {len(self.seeds)} seeds"
            raise ValueError(f"{factors} are {self.tasks} trainings, and {MAX_TASKS} are allowed: make two compares")
        return self

    @property
    def tasks(self) -> int:
        """Trainings in all."""
        return len(self.datasets) * len(self.strategies) * len(self.seeds)

    @property
    def autoencoder_for_classes(self) -> Architecture | None:
        """The network that makes cards, beside a classifier; None where the learner gives images back itself."""
        if self.scenario not in CLASSIFY:
            return None
        return self.autoencoder_architecture or first_autoencoder(self.architecture)

    def architecture_for(self, strategy: Strategy) -> Architecture:
        """cl_vae draws from the learner itself, which has to be a variational autoencoder."""
        asked = self.architecture
        if strategy.kind != "cl_vae" or not isinstance(asked, BlkArchitecture):
            return asked
        return VaeArchitecture(**{**dict(asked), "family": "vae"})


class NoopSpec(Spec):
    """Goes the whole way of a job and does nothing: to see that the queue works, and how fast."""

    kind: Literal["noop"]


EngineSpec = Annotated[
    TrainSpec
    | CaptureSpec
    | ShardSpec
    | AnalyzeSpec
    | DistillSpec
    | LearnSpec
    | EvaluateSpec
    | PredictSpec
    | ExportSpec
    | CompareSpec,
    Field(discriminator="kind"),
]
JobSpec = Annotated[
    TrainSpec
    | CaptureSpec
    | AnalyzeSpec
    | DistillSpec
    | LearnSpec
    | EvaluateSpec
    | PredictSpec
    | ExportSpec
    | CompareSpec
    | NoopSpec,
    Field(discriminator="kind"),
]
#: What is on record: what was asked for, and what that was split into.
AnySpec = Annotated[JobSpec | ShardSpec, Field(discriminator="kind")]
JobKind = Literal[
    "train",
    "capture",
    "shard",
    "analyze",
    "distill",
    "learn",
    "evaluate",
    "predict",
    "export",
    "compare",
    "noop",
]
job_spec: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
any_spec: TypeAdapter[AnySpec] = TypeAdapter(AnySpec)
