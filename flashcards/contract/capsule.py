"""The capsule: what is measured on real images while they are there, and kept when they go. No image is in it.

Of the latents (the encoder's output, flattened in its own order): mean and covariance. Of the reconstruction error of
an image, mean |x - f(x)|: smallest (the paper's epsilon 1), largest (epsilon 2), mean and quantiles. Of the pixels:
mean, deviation and tones (how often each brightness occurs, as quantiles) a channel. Then how many images there were,
and which network saw them.

It is a safetensors file: float32 tensors, and one JSON text under `flashcards.capsule` in its metadata.

    mean         D
    covariance   the lower triangle, row after row: D (D + 1) / 2
    or, where that would make the file larger than 200 KB:
    factor       K x D      covariance = factor^T factor + diag(diagonal): the strongest K directions,
    diagonal     D          and what they leave of each dimension's variance
    tones        C x Q      pixel values at (q + 1/2) / Q of the way through all of a channel, in ascending order; not
                            in capsules of an earlier format, nor where channels are too many

Of labelled images it may also hold moments of each class, see `class_moments`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from flashcards.contract import class_moments
from flashcards.contract.base import Record
from flashcards.contract.class_moments import ClassMoments

Array = NDArray[np.floating]

METADATA = "flashcards.capsule"
MOST_BYTES = 200_000
HEADER_ROOM = 1_000  # for the names and places of the tensors, beside the facts
SLACK = 1e-4  # of the largest variance: how far below zero rounding may push an eigenvalue
QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")
MOST_TONES = 256
TONES_ROOM = 3_072  # numbers, over all channels


class BadCapsule(ValueError):
    """Not a capsule, or one that cannot be true."""


class CapsuleFacts(Record):
    version: int = Field(default=1, ge=1, le=1)
    model_digest: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the weights that saw the images"
    )
    measured_on: Literal["images", "cards"] = Field(
        default="images", description="cards: no image was there, and cards of a parent stood in"
    )
    count: int = Field(ge=2, description="images that were measured")
    latent: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        min_length=1, max_length=4, description="shape of the encoder's output"
    )
    eps1: float = Field(ge=0, description="smallest error of any image")
    eps2: float = Field(ge=0, description="largest error of any image")
    mean_error: float = Field(ge=0)
    error_quantiles: dict[str, float]
    channel_mean: list[float]
    channel_deviation: list[float]

    @property
    def latent_size(self) -> int:
        return math.prod(self.latent)


@dataclass(frozen=True)
class Capsule:
    facts: CapsuleFacts
    mean_D: Array
    triangle: Array | None = None
    factor_KD: Array | None = None
    diagonal_D: Array | None = None
    tones_CQ: Array | None = None
    by_class: ClassMoments | None = None

    def covariance(self) -> Array:
        if self.triangle is not None:
            return _unpacked(self.triangle, len(self.mean_D))
        assert self.factor_KD is not None
        assert self.diagonal_D is not None
        return self.factor_KD.T @ self.factor_KD + np.diag(self.diagonal_D)

    def total_variance(self) -> float:
        """The trace of the covariance: half the mean squared distance of two latents."""
        if self.triangle is not None:
            ends = np.cumsum(np.arange(1, len(self.mean_D) + 1)) - 1
            return float(self.triangle[ends].sum())
        assert self.factor_KD is not None
        assert self.diagonal_D is not None
        return float((self.factor_KD**2).sum() + self.diagonal_D.sum())

    def to_bytes(self) -> bytes:
        """The same capsule, the same bytes."""
        named = {
            "mean": self.mean_D,
            "covariance": self.triangle,
            "diagonal": self.diagonal_D,
            "factor": self.factor_KD,
            "tones": self.tones_CQ,
            **(self.by_class.tensors() if self.by_class is not None else {}),
        }
        tensors = {name: np.ascontiguousarray(array, "<f4") for name, array in named.items() if array is not None}
        header: dict[str, object] = {"__metadata__": {METADATA: self.facts.model_dump_json()}}
        end = 0
        for name, array in tensors.items():
            begin, end = end, end + array.nbytes
            header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [begin, end]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in tensors.values())])


def pack(facts: CapsuleFacts, mean_D: Array, covariance_DD: Array) -> Capsule:
    """As the whole triangle where that is small enough, else as its strongest directions."""
    size = len(mean_D)
    if 4 * (size + size * (size + 1) // 2) <= _room(facts):
        return Capsule(facts, mean_D, triangle=covariance_DD[np.tril_indices(size)])
    values, vectors = np.linalg.eigh(covariance_DD)
    return from_directions(facts, mean_D, np.diag(covariance_DD), values[::-1], vectors[:, ::-1].T)


def from_directions(
    facts: CapsuleFacts, mean_D: Array, variance_D: Array, values_K: Array, vectors_KD: Array
) -> Capsule:
    """Strongest first; as many of the directions as there is room for."""
    size = len(mean_D)
    rank = max(1, min(len(values_K), _room(facts) // (4 * size) - 2))
    factor_KD = np.sqrt(np.maximum(values_K[:rank], 0))[:, None] * vectors_KD[:rank]
    diagonal_D = np.maximum(variance_D - (factor_KD**2).sum(0), 0)
    return Capsule(facts, mean_D, factor_KD=factor_KD, diagonal_D=diagonal_D)


def _room(facts: CapsuleFacts) -> int:
    """Bytes for tensors. The facts are JSON inside JSON: their quotes take two bytes."""
    return MOST_BYTES - HEADER_ROOM - 4 * TONES_ROOM - len(json.dumps(facts.model_dump_json()))


def read(raw: bytes) -> Capsule:
    """The capsule in these bytes. Raises BadCapsule with the reason in words."""
    facts, found = _parsed(raw)
    size = facts.latent_size
    tensors = {name: array for name, array in found.items() if name not in class_moments.NAMES}
    if tensors.keys() - {"tones"} not in ({"mean", "covariance"}, {"mean", "factor", "diagonal"}):
        raise BadCapsule("it needs the tensors mean and covariance, or mean, factor and diagonal")
    if not all(np.isfinite(array).all() for array in found.values()):
        raise BadCapsule("it holds numbers that are not finite")
    rank = tensors["factor"].shape[0] if "factor" in tensors and tensors["factor"].ndim == 2 else 0
    shapes = {"mean": (size,), "covariance": (size * (size + 1) // 2,), "factor": (rank, size), "diagonal": (size,)}
    shapes["tones"] = _fitting_tones(tensors.get("tones"), len(facts.channel_mean))
    for name, array in tensors.items():
        if array.shape != shapes[name]:
            raise BadCapsule(
                f"{name} has the shape {array.shape}, and a latent of {size} numbers, of images of "
                f"{len(facts.channel_mean)} channels, needs {shapes[name]}"
            )
    doubles = {name: array.astype(np.float64) for name, array in tensors.items()}
    capsule = Capsule(
        facts,
        doubles["mean"],
        doubles.get("covariance"),
        doubles.get("factor"),
        doubles.get("diagonal"),
        doubles.get("tones"),
        _of_classes(found, size),
    )
    _refuse_impossible(capsule)
    return capsule


def _of_classes(tensors: Mapping[str, Array], size: int) -> ClassMoments | None:
    found = {name: tensors[name].astype(np.float64) for name in class_moments.NAMES if name in tensors}
    if not found:
        return None
    if len(found) < len(class_moments.NAMES):
        raise BadCapsule(f"moments of classes are the tensors {', '.join(class_moments.NAMES)}, and some are missing")
    try:
        return class_moments.read(found, size)
    except ValueError as error:
        raise BadCapsule(str(error)) from error


def _fitting_tones(tones: Array | None, channels: int) -> tuple[int, int]:
    """Any number of them will do, from 2 on."""
    many = tones.shape[1] if tones is not None and tones.ndim == 2 else 0
    return channels, min(max(many, 2), MOST_TONES)


def _refuse_impossible(capsule: Capsule) -> None:
    if capsule.diagonal_D is not None and (capsule.diagonal_D < 0).any():
        raise BadCapsule("a variance on its diagonal is negative")
    if capsule.triangle is not None:
        values = np.linalg.eigvalsh(capsule.covariance())
        if values[0] < -SLACK * max(values[-1], 1e-12):
            raise BadCapsule(f"its covariance is not positive semi-definite: it has the eigenvalue {values[0]:.3g}")
    if capsule.tones_CQ is not None and (np.diff(capsule.tones_CQ) < 0).any():
        raise BadCapsule("its tones do not ascend")
    if capsule.facts.eps1 > capsule.facts.eps2:
        raise BadCapsule("its smallest error is larger than its largest")


def _parsed(raw: bytes) -> tuple[CapsuleFacts, Mapping[str, Array]]:
    try:
        end = 8 + int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:end].decode())
        facts = CapsuleFacts.model_validate_json(header.pop("__metadata__")[METADATA])
        tensors = {name: _tensor(raw[end:], **entry) for name, entry in header.items()}
        if sum(array.nbytes for array in tensors.values()) != len(raw) - end:
            raise ValueError("its tensors do not fill the file")
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadCapsule(f"it is not a capsule that can be read: {str(error)[:200]}") from error
    return facts, tensors


def _tensor(data: bytes, dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    if dtype != "F32":
        raise ValueError(f"{dtype} in place of F32")
    begin, end = data_offsets
    if not 0 <= begin <= end <= len(data):
        raise ValueError("it is cut off")
    return np.frombuffer(data[begin:end], "<f4").reshape(shape)


def _unpacked(triangle: Array, size: int) -> Array:
    lower = np.zeros((size, size))
    lower[np.tril_indices(size)] = triangle
    return lower + np.tril(lower, -1).T
