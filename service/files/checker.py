"""What an uploaded file holds, or BadFile; and the file to keep in its place, where it has to be converted."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, overload

from pydantic import ValidationError

from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.image import IMAGE_SUFFIXES, MAX_CHANNELS, MAX_SIDE, MAX_VECTOR
from service.files.capsule import describe_capsule
from service.files.errors import BadFile
from service.files.facts import (
    CapsuleQuestion,
    DatasetFacts,
    DatasetQuestion,
    ModelFacts,
    ModelQuestion,
    ProbeFacts,
    ProbeQuestion,
)
from service.files.model import Graph, Weights, conversion, describe_graph, describe_model
from service.files.probe import describe_probe
from service.files.process import Making, ask_child, unchecked
from service.files.unpack import BundleFacts, BundleQuestion, describe_bundle

Question = ModelQuestion | ProbeQuestion | CapsuleQuestion | DatasetQuestion | BundleQuestion
Facts = ModelFacts | ProbeFacts | CapsuleFacts | DatasetFacts | BundleFacts
DEFLATE_RATIO = 1032  # nothing inflates further
HEADERS = 1 << 20  # what a converted file has beside its numbers, at most


@overload
async def check_file(path: Path, question: ModelQuestion, made: Path) -> ModelFacts: ...
@overload
async def check_file(path: Path, question: ProbeQuestion, made: Path) -> ProbeFacts: ...
@overload
async def check_file(path: Path, question: CapsuleQuestion, made: Path) -> CapsuleFacts: ...
@overload
async def check_file(path: Path, question: DatasetQuestion, made: Path) -> DatasetFacts: ...
@overload
async def check_file(path: Path, question: BundleQuestion, made: Path) -> BundleFacts: ...


async def check_file(path: Path, question: Question, made: Path) -> Facts:
    """Only child processes read it. There is a file at `made` afterwards if that is to be kept instead."""
    with path.open("rb") as upload:
        try:
            return await _check(upload, question, made)
        except ValidationError as error:
            raise unchecked("the check gave an answer that makes no sense", error=str(error)) from error


async def _check(upload: BinaryIO, question: Question, made: Path) -> Facts:
    match question:
        case ModelQuestion():
            return await _check_model(upload, question, made)
        case ProbeQuestion():
            answer = await ask_child(upload, {"format": "safetensors"}, work=_size(upload))
            return describe_probe(question, Weights.model_validate(answer))
        case CapsuleQuestion():
            return describe_capsule(question, await ask_child(upload, {"format": "capsule"}, work=_size(upload)))
        case BundleQuestion():
            return describe_bundle(await ask_child(upload, {"format": "bundle"}, work=2 * _size(upload)))
        case DatasetQuestion():
            return await _check_dataset(upload, question, made)


async def _check_model(upload: BinaryIO, question: ModelQuestion, made: Path) -> ModelFacts:
    answer = await ask_child(upload, {"format": "weights"}, work=_size(upload))
    weights = Weights.model_validate(answer)
    if weights.format == "onnx":
        return await _check_graph(upload, question)
    facts = describe_model(question, weights)
    if order := conversion(facts, weights):
        told = {"format": "weights", **order.model_dump()}
        with _fresh(made, facts.architecture.size(facts.input) + HEADERS) as making:
            await ask_child(upload, told, work=_size(upload), making=making)
    return facts


async def _check_graph(upload: BinaryIO, question: ModelQuestion) -> ModelFacts:
    asked = {"input": question.input, "bottleneck": question.bottleneck, "task": question.task}
    answer = await ask_child(upload, {"format": "onnx", **asked}, work=_size(upload))
    return describe_graph(question, Graph.model_validate(answer))


async def _check_dataset(upload: BinaryIO, question: DatasetQuestion, made: Path) -> DatasetFacts:
    most = question.max_bytes
    work = _size(upload) + min(most, DEFLATE_RATIO * _size(upload))
    limits = {"max_bytes": most, "max_side": MAX_SIDE, "max_channels": MAX_CHANNELS, "max_vector": MAX_VECTOR}
    answer = await ask_child(upload, {"format": "dataset", **limits}, work=work)
    if question.columns and answer.get("format") != "parquet":
        raise BadFile("there are no columns in it", "?image= and ?label= name columns of parquet files: leave them out")
    if answer.get("format") == "npz" and _is_prepared(facts := DatasetFacts.model_validate(answer), question):
        return facts
    asked = {"suffixes": IMAGE_SUFFIXES, "input": question.input, "invert": question.invert, **question.columns}
    format = "parquet" if answer.get("format") == "parquet" else "dataset"
    with _fresh(made, most + HEADERS) as making:
        answer = await ask_child(upload, {"format": format, **limits, **asked}, work=work, making=making)
        return DatasetFacts.model_validate(answer)


def _is_prepared(facts: DatasetFacts, question: DatasetQuestion) -> bool:
    """An npz to which there is nothing to do is kept to the byte."""
    shapes = {split.shape for split in facts.splits.values()}
    return not question.invert and (question.input is None or shapes == {question.input})


@contextmanager
def _fresh(path: Path, most: int) -> Iterator[Making]:
    """An empty file for a conversion; nothing is left of it where that fails."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        yield Making(fd, most)
    except BaseException:
        path.unlink()
        raise
    finally:
        os.close(fd)


def _size(upload: BinaryIO) -> int:
    return os.fstat(upload.fileno()).st_size
