"""How a learner keeps what it knows while it learns the next task: one config a strategy, told apart by `kind`."""

from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from flashcards.contract.base import Record
from flashcards.contract.recipe import Source

Weight = Annotated[float, Field(ge=0, le=1e6, description="lambda: how much the old counts against the new")]
Cards = Annotated[int, Field(ge=1, le=1_000_000, description="cards in all, in balance over the earlier tasks")]


class Flashcards(Record):
    """Replay of cards, made from the learner itself and what its capsules say of the earlier tasks. Keeps no image."""

    kind: Literal["flashcards"] = "flashcards"
    source: Source = Field(default="auto", description="P(M): where cards start; auto: the best each task allows")
    count: Cards = 5000
    share: float | None = Field(
        default=None, gt=0, le=10, description="in place of count: so many cards for each image of the new task"
    )
    r: Annotated[int, Field(ge=0, le=1000)] | Literal["auto"] = "auto"
    ratio: Annotated[float, Field(gt=0, le=8)] | Literal["auto"] = Field(
        default="auto", description="cards beside each new image of a batch; the paper has 1. auto: 2, of classes 1"
    )
    weight: Weight = 1.0
    fresh: bool = Field(default=False, description="true: other cards in every epoch")
    loss: Literal["auto", "soft_labels", "transplant", "local_distill"] = Field(
        default="auto",
        description="classification: how cards are learnt. soft_labels: the paper's. transplant: every other card has "
        "what is fine in a new image, so that new and old differ in their classes alone. local_distill: new classes "
        "among themselves. auto: transplant, in new_instance soft_labels",
    )
    by_class: bool = Field(
        default=True, description="classification: cards of a task in balance over its classes, from moments of each"
    )

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if self.share is not None and self.count != type(self).model_fields["count"].default:
            raise ValueError("say how many cards by count or by share, one of the two")
        return self


class Naive(Record):
    """Nothing is kept: the next task is all there is (sequential fine-tuning)."""

    kind: Literal["naive"]


class Joint(Record):
    """All images of all tasks are kept and learnt again: what the others are measured against."""

    kind: Literal["joint"]


class Coreset(Record):
    """Some images of the earlier tasks are kept and replayed."""

    kind: Literal["coreset"]
    size: int = Field(default=500, ge=1, le=1_000_000, description="images kept in all")
    choice: Literal["per_task", "reservoir"] = Field(
        default="per_task", description="equal shares a task, or every image seen with the same chance"
    )
    weight: Weight = 1.0


class Lwf(Record):
    """Learning without forgetting: on new images the network is also held to the answers it gave before the task."""

    kind: Literal["lwf"]
    weight: Weight = 1.0


class Ewc(Record):
    """Elastic weight consolidation: weights that mattered are held by springs, as stiff as the Fisher information."""

    kind: Literal["ewc"]
    weight: Weight = 100.0


class Si(Record):
    """Synaptic intelligence: as `ewc`, with an importance that is gathered along the way of the training."""

    kind: Literal["si"]
    weight: Weight = 1.0
    damping: float = Field(default=0.1, gt=0, le=1e3)


class VaeReplay(Record):
    """A variational autoencoder beside the learner draws the images to replay, and is taught along with it."""

    kind: Literal["vae_replay"]
    count: Cards = 5000
    weight: Weight = 1.0


class ClVae(Record):
    """The learner is itself a variational autoencoder, and replays what it draws. Needs an architecture `vae_...`."""

    kind: Literal["cl_vae"]
    count: Cards = 5000
    weight: Weight = 1.0


class Imm(Record):
    """Incremental moment matching: the weights after the task and those before it are merged into one network."""

    kind: Literal["imm"]
    merge: Literal["mean", "mode"] = Field(
        default="mode", description="equal shares a task, or each weight by how much it mattered to each task"
    )
    weight: Weight = Field(default=1e-3, description="lambda: how strongly the new weights are held near the old ones")


class Eeil(Record):
    """End-to-end incremental learning: exemplars are replayed, old answers distilled, and the end is in balance."""

    kind: Literal["eeil"]
    size: int = Field(default=1000, ge=1, le=1_000_000, description="exemplars kept in all, in balance over classes")
    weight: Weight = 1.0
    temperature: float = Field(default=2.0, gt=0, le=100, description="of the answers that are distilled")
    balanced: float = Field(default=0.25, ge=0, le=0.9, description="share of the epochs, at the end, in balance")


class Agem(Record):
    """Averaged gradient episodic memory: no step may be one that images kept of the earlier tasks speak against."""

    kind: Literal["agem"]
    size: int = Field(default=1000, ge=1, le=1_000_000, description="images kept in all")


Strategy = Flashcards | Naive | Joint | Coreset | Lwf | Ewc | Si | VaeReplay | ClVae | Imm | Eeil | Agem
StrategyField = Annotated[Strategy, Field(discriminator="kind")]
strategy_spec: TypeAdapter[Strategy] = TypeAdapter(StrategyField)


def called(strategy: Strategy) -> str:
    """Its kind, and what it has otherwise than by default: two of a kind are told apart by it."""
    asked = strategy.model_dump(mode="json", exclude_defaults=True, exclude={"kind"})
    return " ".join([strategy.kind, *(f"{field}={value}" for field, value in asked.items())])


#: These keep images of earlier tasks, and say so in the learner's record.
KEEPS_DATA = ("joint", "coreset", "eeil", "agem")
#: These speak of classes, and are for learners of them; cl_vae speaks of images that the learner gives back.
CLASSES_ONLY = ("imm", "eeil", "agem")
IMAGES_ONLY = ("cl_vae",)
