"""Do these weights make a model? What the uploader and the metadata say, against the tensors that are there."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from flashcards.contract.architecture import Architecture, Onnx, TensorShape, architecture_spec
from flashcards.contract.base import Record
from flashcards.contract.image import ImageShape, PixelRange, Shape
from service.files.errors import BadFile
from service.files.facts import ModelFacts, ModelQuestion
from service.files.names import UNFIT, match
from service.files.words import quoted

DEFAULT_INPUT = ImageShape(32, 32, 3)
DEFAULT_RANGE = (0.0, 1.0)

Value = TypeVar("Value")
_shape: TypeAdapter[ImageShape] = TypeAdapter(Shape)
_range: TypeAdapter[tuple[float, float]] = TypeAdapter(PixelRange)


class Weights(Record):
    """What the child found, in the order of the file."""

    format: Literal["safetensors", "pt", "onnx"]
    metadata: dict[str, str]
    tensors: dict[str, TensorShape]
    dtypes: list[str] = Field(description="of the floats among them")
    counters: list[str] = Field(default=[], description="those that are a single whole number")


class Graph(Record):
    """What the child found in an ONNX file."""

    architecture: dict[str, Any]
    input: tuple[int, int, int]
    metadata: dict[str, str]


class Conversion(Record):
    """What has to be done before the weights can be kept."""

    names: dict[str, str] = Field(description="theirs -> ours, in our order")
    metadata: dict[str, str]
    zeros: list[str] = Field(description="counters of ours that the file does without: they begin at 0")


def describe_model(question: ModelQuestion, weights: Weights) -> ModelFacts:
    architecture = _which_architecture(question, weights.metadata)
    if question.bottleneck is not None or question.task not in (None, architecture.task):
        raise BadFile("no ONNX file", f"bottleneck and task are asked of ONNX files: {architecture.name} has its own")
    shape = question.input or _from_metadata(weights.metadata, "input", _shape.validate_python) or DEFAULT_INPUT
    limits = question.range or _from_metadata(weights.metadata, "range", read_range) or DEFAULT_RANGE
    if (words := architecture.misfit(shape)) is not None:
        raise BadFile(UNFIT, words)
    ours, whose = dict(architecture.tensors(shape)), f"{architecture.name} on {shape}"
    ordered = weights.format == "pt"
    names = match(ours, weights.tensors, ordered=ordered, whose=whose, counters=weights.counters)
    renamed = {theirs: name for theirs, name in names.items() if theirs != name}
    parameters = architecture.parameters(shape)
    return ModelFacts(
        architecture=architecture, input=shape, range=limits, parameters=parameters, mapping=renamed or None
    )


def describe_graph(question: ModelQuestion, graph: Graph) -> ModelFacts:
    """The file is its own architecture: what the uploader says of it has been looked for in there."""
    if question.architecture is not None:
        raise BadFile("two architectures", "an ONNX file says by itself which layers it has: leave ?architecture= out")
    try:
        shape = _shape.validate_python(graph.input)
        architecture = architecture_spec.validate_python(graph.architecture)
    except ValidationError as error:
        raise BadFile("the graph does not take images that are taken here", first_words(error)) from error
    limits = question.range or _from_metadata(graph.metadata, "range", read_range) or DEFAULT_RANGE
    return ModelFacts(architecture=architecture, input=shape, range=limits, parameters=architecture.parameters(shape))


def conversion(facts: ModelFacts, weights: Weights) -> Conversion | None:
    """None for what is already as we keep it: safetensors, float32, our names."""
    others = [dtype for dtype in weights.dtypes if dtype != "float32"]
    ours = facts.architecture.tensors(facts.input)
    zeros = [name for name, shape in ours if shape == () and not weights.counters]
    if weights.format == "safetensors" and not others and not facts.mapping and not zeros:
        return None
    theirs = {name: other for other, name in (facts.mapping or {}).items()}
    low, high = facts.range
    metadata = {
        "flashcards.architecture": facts.architecture.model_dump_json(),
        "flashcards.input": str(facts.input),
        "flashcards.range": f"{low!r},{high!r}",
        "flashcards.converted_from": ", ".join([weights.format, *others]),
    }
    names = {theirs.get(name, name): name for name, _ in ours if name not in zeros}
    return Conversion(names=names, metadata=metadata, zeros=zeros)


def read_architecture(text: str) -> Architecture:
    """A name, or JSON with the fields of its family."""
    if text.lstrip().startswith("{"):
        return architecture_spec.validate_json(text)
    return architecture_spec.validate_python(text)


def read_range(text: str) -> tuple[float, float]:
    return _range.validate_python(text.split(","))


def _which_architecture(question: ModelQuestion, metadata: dict[str, str]) -> Architecture:
    asked, written = question.architecture, _from_metadata(metadata, "architecture", read_architecture)
    if asked and written and asked != written:
        both = f"the upload says {_in_words(asked)}, the file's metadata {_in_words(written)}"
        raise BadFile("two architectures", f"{both}: leave ?architecture= out, or save the file with the right one")
    known = asked or written
    if isinstance(known, Onnx):
        raise BadFile("two architectures", "these are weights, and the architecture is that of an ONNX file")
    if known is None:
        how = "pass ?architecture=blk_4_fil_64, or save the file with that as metadata flashcards.architecture"
        raise BadFile("the architecture is not known", how)
    return known


def _from_metadata(metadata: dict[str, str], key: str, parse: Callable[[str], Value]) -> Value | None:
    text = metadata.get(f"flashcards.{key}")
    if text is None:
        return None
    try:
        return parse(text)
    except ValidationError as error:
        raise BadFile("the metadata is wrong", f"flashcards.{key} is {quoted(text)}: {first_words(error)}") from error


def first_words(error: ValidationError) -> str:
    return str(error.errors()[0]["msg"])


def _in_words(architecture: Architecture) -> str:
    return f"{architecture.name} ({architecture.manner})"
