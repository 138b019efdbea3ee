"""What all classifiers have: an encoder that makes a latent of an image, and linear heads that read classes off it.

The answer is one score a class, those of all heads side by side: class c of head h is label c plus the classes of the
heads before h. The highest score of all is the answer of one who is not told which head to ask.
"""

from abc import abstractmethod
from itertools import takewhile
from typing import Annotated, Any

from pydantic import Field

from flashcards.contract.families.base import Family, Task, Tensors, linear
from flashcards.contract.image import ImageShape

Classes = Annotated[int, Field(ge=2, le=1000)]
HEADS = r"(_\d{1,4}){0,20}"


class ClassifierFamily(Family):
    heads: tuple[Classes, ...] = Field(
        default=(),
        max_length=20,
        description="how many classes each head tells apart; none: a learner's tasks will say",
    )

    @property
    def task(self) -> Task:
        return "classify"

    @property
    def manner(self) -> str:
        return f"{self.classes:,} classes" + (f" in {len(self.heads)} heads" if len(self.heads) > 1 else "")

    @property
    def classes(self) -> int:
        """Of all heads together."""
        return sum(self.heads)

    @property
    @abstractmethod
    def latent_units(self) -> int: ...

    @abstractmethod
    def _encoder(self, image: ImageShape) -> Tensors: ...

    def misfit(self, image: ImageShape) -> str | None:
        if not self.heads:
            return f"{self.name} says no number of classes: {self.name.split('_')[0]}_10, for one, tells ten apart"
        return super().misfit(image)

    def latent_shape(self, image: ImageShape) -> tuple[int, ...]:
        return (self.latent_units,)

    def answer_shape(self, image: ImageShape) -> tuple[int, ...]:
        return (self.classes,)

    def tensors(self, image: ImageShape) -> Tensors:
        read = [
            each for n, classes in enumerate(self.heads) for each in linear(f"heads.{n}", classes, self.latent_units)
        ]
        return [*self._encoder(image), *read]

    def _named(self, family: str, **sizes: int) -> str:
        """A size stands in the name where it differs from the default, always in this order."""
        fields = type(self).model_fields
        words = [f"{field}_{size}" for field, size in sizes.items() if size != fields[field].default]
        return "_".join([family, *map(str, self.heads), *words])


def parse(name: str) -> dict[str, Any]:
    """The family, the classes of its heads, then sizes by their field: `tasknet_10_10_width_4`."""
    family, *parts = name.split("_")
    heads = list(takewhile(str.isdigit, parts))
    rest = parts[len(heads) :]
    sizes = dict(zip(rest[::2], map(int, rest[1::2]), strict=True))
    return {"family": family, "heads": [int(classes) for classes in heads], **sizes}
