from abc import abstractmethod
from math import prod
from typing import TYPE_CHECKING, Literal

from flashcards.contract.base import Record
from flashcards.contract.image import ImageShape

TensorShape = tuple[int, ...]
Tensors = list[tuple[str, TensorShape]]
Activation = Literal["tanh", "relu"]
Head = Literal["linear", "sigmoid"]
Task = Literal["reconstruct", "classify"]

MAX_PARAMETERS = 2**26  # 256 MB as float32; Adam takes three times that beside them
BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


class Family(Record):
    """What every architecture knows of itself, without torch."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def task(self) -> Task:
        """What it does with an image: give it back, or say what it shows."""

    @property
    @abstractmethod
    def manner(self) -> str:
        """What the name may leave out, in words."""

    @abstractmethod
    def _misfit(self, image: ImageShape) -> str | None:
        """Why such images cannot go through."""

    @abstractmethod
    def tensors(self, image: ImageShape) -> Tensors:
        """Every tensor of the state dict, in order: what a checkpoint must hold, and nothing else.

        All are float32 but those without sides, which count batches and are int64.
        """

    @abstractmethod
    def latent_shape(self, image: ImageShape) -> tuple[int, ...]:
        """Height, width and channels, or the number of units."""

    @abstractmethod
    def answer_shape(self, image: ImageShape) -> tuple[int, ...]:
        """Sides of what it says to one image."""

    @abstractmethod
    def widest(self, image: ImageShape) -> int:
        """Numbers in the largest map that one image becomes on its way through."""

    def misfit(self, image: ImageShape) -> str | None:
        """In words, why this network cannot take such images and answer them; None where it can."""
        if (words := self._misfit(image)) is not None:
            return words
        if (count := self.parameters(image)) > MAX_PARAMETERS:
            return f"{self.name} on {image} has {count:,} parameters, and {MAX_PARAMETERS:,} are the most"
        return None

    def fits(self, image: ImageShape) -> bool:
        return self.misfit(image) is None

    def parameters(self, image: ImageShape) -> int:
        """What is learnt; the running averages of a batch norm are not."""
        return sum(prod(shape) for name, shape in self.tensors(image) if not name.endswith(BUFFERS))

    def size(self, image: ImageShape) -> int:
        """Bytes of all tensors."""
        return sum(4 * prod(shape) if shape else 8 for _, shape in self.tensors(image))


class AutoencoderFamily(Family):
    """Gives an image back, in the shape in which it came."""

    if TYPE_CHECKING:  # every family of them has its own default for these two
        activation: Activation
        head: Head

    @property
    def task(self) -> Task:
        return "reconstruct"

    @property
    def manner(self) -> str:
        return f"{self.activation}, {self.head} head"

    def answer_shape(self, image: ImageShape) -> tuple[int, ...]:
        return image


def conv(layer: str, out_channels: int, in_channels: int) -> Tensors:
    return [(f"{layer}.weight", (out_channels, in_channels, 3, 3)), (f"{layer}.bias", (out_channels,))]


def bare_conv(layer: str, out_channels: int, in_channels: int, side: int = 3) -> Tensors:
    """Without a bias: the batch norm behind it has one."""
    return [(f"{layer}.weight", (out_channels, in_channels, side, side))]


def linear(layer: str, outputs: int, inputs: int) -> Tensors:
    return [(f"{layer}.weight", (outputs, inputs)), (f"{layer}.bias", (outputs,))]


def batch_norm(layer: str, channels: int) -> Tensors:
    parts = ("weight", "bias", "running_mean", "running_var")
    return [*((f"{layer}.{part}", (channels,)) for part in parts), (f"{layer}.num_batches_tracked", ())]


def unhalved(name: str, times: int, image: ImageShape) -> str | None:
    """In words, that an image cannot be halved so often and come back with the sides it had."""
    stride = 2**times
    if image.height % stride == 0 and image.width % stride == 0:
        return None
    often = "once" if times == 1 else f"{times} times"
    return f"{name} halves an image {often}: both sides must divide by {stride}, and those of {image} do not"
