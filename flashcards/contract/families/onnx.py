"""Networks of any framework, as ONNX files: `onnx` gives images back, `onnx_classifier` says what they show.

The file is the network: nothing here builds one, and none can be trained. What a spec holds was read off the graph when
the file was uploaded: which tensor comes in, which is the latent, which is the answer, and how an image lies in them.
"""

from math import prod
from typing import Annotated, Literal

from pydantic import Field

from flashcards.contract.families.base import Family, Task, Tensors
from flashcards.contract.families.classifier import Classes, ClassifierFamily
from flashcards.contract.image import ImageShape

#: How images lie in a batch: channels first, channels last, without channels, or as rows of a table.
Layout = Literal["nchw", "nhwc", "nhw", "nd"]
TensorName = Annotated[str, Field(min_length=1, max_length=200, description="of a tensor of the graph")]
Count = Annotated[int, Field(ge=1)]

UNTRAINABLE = (
    "an ONNX file is run as it is and cannot be trained: capture its cards and distill them into an architecture that "
    "can, such as blk_4_fil_32 or dense_ae_256_64_16"
)


class OnnxArchitecture(Family):
    """An autoencoder of any framework, as the graph of its ONNX file."""

    family: Literal["onnx"]
    layout: Layout
    image: TensorName = Field(description="the tensor that images come in by")
    bottleneck: TensorName = Field(description="the tensor that all paths pass through: the latent")
    answer: TensorName = Field(description="the tensor that images come back in")
    latent: tuple[Count, ...] = Field(min_length=1, max_length=8, description="sides of the latent of one image")
    batch: Count | None = Field(default=None, description="images a pass, where the graph is built for one number only")
    opset: int
    weights: int = Field(ge=0, description="numbers in its constants")
    largest: Count = Field(description="numbers in the largest tensor that one image becomes on its way through")

    @property
    def name(self) -> str:
        return f"onnx_latent_{prod(self.latent)}"

    @property
    def task(self) -> Task:
        return "reconstruct"

    @property
    def manner(self) -> str:
        return f"opset {self.opset}, {self.layout.upper()}, latent {self.bottleneck!r}"

    def _misfit(self, image: ImageShape) -> str | None:
        return None

    def tensors(self, image: ImageShape) -> Tensors:
        """None that a checkpoint could hold: they are constants of the graph."""
        return []

    def latent_shape(self, image: ImageShape) -> tuple[int, ...]:
        return self.latent

    def answer_shape(self, image: ImageShape) -> tuple[int, ...]:
        return image

    def widest(self, image: ImageShape) -> int:
        return self.largest

    def parameters(self, image: ImageShape) -> int:
        return self.weights

    def size(self, image: ImageShape) -> int:
        return 4 * self.weights


class OnnxClassifierArchitecture(ClassifierFamily):
    """A classifier of any framework, as the graph of its ONNX file. What it answers are scores, before a softmax."""

    family: Literal["onnx_classifier"]
    heads: tuple[Classes, ...] = Field(min_length=1, max_length=1, description="how many classes it tells apart")
    layout: Layout
    image: TensorName = Field(description="the tensor that images come in by")
    answer: TensorName = Field(description="the tensor that holds a score a class")
    batch: Count | None = Field(default=None, description="images a pass, where the graph is built for one number only")
    opset: int
    weights: int = Field(ge=0, description="numbers in its constants")
    largest: Count = Field(description="numbers in the largest tensor that one image becomes on its way through")

    @property
    def name(self) -> str:
        return f"onnx_classifier_{self.classes}"

    @property
    def latent_units(self) -> int:
        return self.classes

    def _misfit(self, image: ImageShape) -> str | None:
        return None

    def _encoder(self, image: ImageShape) -> Tensors:
        return []

    def tensors(self, image: ImageShape) -> Tensors:
        """None that a checkpoint could hold: they are constants of the graph."""
        return []

    def widest(self, image: ImageShape) -> int:
        return self.largest

    def parameters(self, image: ImageShape) -> int:
        return self.weights

    def size(self, image: ImageShape) -> int:
        return 4 * self.weights
