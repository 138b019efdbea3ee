"""`tasknet_ae`, the autoencoder beside a `tasknet`: its encoder, tensor for tensor, and a decoder behind the latent.

decoder: linear to 2000, relu, linear to the map of the last conv, relu; then the convs of the encoder backwards, each
conv3x3 with batch norm and relu before the sides grow back to what they were; a last conv3x3 to the channels of the
image. The paper says no more of the decoder than that there is one. Its convs come before the sides grow, so that a
pass through it costs what one through the encoder does.
"""

from itertools import pairwise
from math import prod
from typing import Any, Literal

from pydantic import Field

from flashcards.contract.families.base import AutoencoderFamily, Head, Tensors, batch_norm, conv, linear
from flashcards.contract.families.tasknet import CONVS, TasknetArchitecture
from flashcards.contract.image import ImageShape

NAME = r"tasknet_ae(_width_\d{1,3})?(_hidden_\d{1,4})?(_latent_\d{1,4})?(_sigmoid)?"


class TasknetAeArchitecture(AutoencoderFamily):
    """The autoencoder that shares its encoder with the paper's classifier of task-incremental learning."""

    family: Literal["tasknet_ae"]
    width: int = Field(default=16, ge=1, le=64, description="channels of the first conv; each next has twice as many")
    hidden: int = Field(default=2000, ge=1, le=4096, description="units of the layers beside the latent")
    latent: int = Field(default=128, ge=1, le=4096)
    activation: Literal["relu"] = "relu"
    head: Head = "linear"

    @property
    def name(self) -> str:
        fields = type(self).model_fields
        sizes = {field: getattr(self, field) for field in ("width", "hidden", "latent")}
        words = [f"{field}_{size}" for field, size in sizes.items() if size != fields[field].default]
        return "_".join(["tasknet_ae", *words, *(["sigmoid"] if self.head == "sigmoid" else [])])

    @property
    def encoder(self) -> TasknetArchitecture:
        """The classifier that it shares its encoder with, without a head."""
        return TasknetArchitecture(family="tasknet", width=self.width, hidden=self.hidden, latent=self.latent)

    def sides(self, image: ImageShape) -> list[tuple[int, int]]:
        """Height and width behind each conv of the encoder, the last first: what the decoder grows back to."""
        found = [tuple(-(-side // 2**halved) for side in image[:2]) for halved in range(CONVS)]
        return [(height, width) for height, width in reversed(found)]

    def _misfit(self, image: ImageShape) -> str | None:
        return None

    def latent_shape(self, image: ImageShape) -> tuple[int, ...]:
        return (self.latent,)

    def widest(self, image: ImageShape) -> int:
        return self.encoder.widest(image)

    def tensors(self, image: ImageShape) -> Tensors:
        inner = prod(self.encoder.map_shape(image))
        stages: Tensors = []
        for place, (inputs, outputs) in enumerate(pairwise(reversed(self.encoder.widths))):
            stages += conv(f"decoder.stages.{place}.conv", outputs, inputs)
            stages += batch_norm(f"decoder.stages.{place}.norm", outputs)
        return [
            *self.encoder.tensors(image),
            *linear("decoder.hidden", self.hidden, self.latent),
            *linear("decoder.map", inner, self.hidden),
            *stages,
            *conv("decoder.head", image.channels, self.width),
        ]


def parse(name: str) -> dict[str, Any]:
    parts = name.removeprefix("tasknet_ae").removesuffix("_sigmoid").split("_")[1:]
    sizes = dict(zip(parts[::2], map(int, parts[1::2]), strict=True))
    return {"family": "tasknet_ae", **sizes} | ({"head": "sigmoid"} if name.endswith("_sigmoid") else {})
