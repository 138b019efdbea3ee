from typing import Literal

from pydantic import Field

from flashcards.contract.architecture import ArchitectureField, Task
from flashcards.contract.base import Record
from flashcards.contract.image import PixelRange, Shape
from flashcards.contract.resources import Preparation, Split


class ModelQuestion(Record):
    """What the uploader said; what is None comes from the file's metadata, or a default."""

    kind: Literal["model"] = "model"
    architecture: ArchitectureField | None = None
    input: Shape | None = None
    range: PixelRange | None = None
    bottleneck: str | None = Field(default=None, description="of an ONNX file: the tensor that is the latent")
    task: Task | None = Field(default=None, description="of an ONNX file: what it does with an image")


class ModelFacts(Record):
    architecture: ArchitectureField
    input: Shape
    range: PixelRange
    parameters: int
    mapping: dict[str, str] | None = Field(default=None, description="their name -> ours, where they differ")


class ProbeQuestion(Record):
    """A probe holds images `x`, N x H x W x C, and the answers `y` that its owner's network gives."""

    kind: Literal["probe"] = "probe"
    input: Shape
    answer: tuple[int, ...] = Field(description="sides of one answer: those of the image, or the number of classes")


class ProbeFacts(Record):
    images: int


class CapsuleQuestion(Record):
    """A capsule goes with the weights it was measured on, as they are kept or as they were uploaded."""

    kind: Literal["capsule"] = "capsule"
    digests: list[str]
    latent_size: int
    channels: int


class DatasetQuestion(Record):
    kind: Literal["dataset"] = "dataset"
    max_bytes: int = Field(ge=0, description="allowed once it is inflated")
    input: Shape | None = Field(default=None, description="what the images are brought to")
    invert: bool = False
    image: str | None = Field(default=None, description="column of a parquet file")
    label: str | None = None

    @property
    def columns(self) -> dict[str, str]:
        named = {"image": self.image, "label": self.label}
        return {field: name for field, name in named.items() if name is not None}


class DatasetFacts(Record):
    format: Literal["npz"]
    splits: dict[str, Split]
    preparation: Preparation | None = None
