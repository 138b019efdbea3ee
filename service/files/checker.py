import os
from pathlib import Path
from typing import overload

from pydantic import ValidationError

from flashcards.contract.image import MAX_CHANNELS, MAX_SIDE
from service.files.facts import DatasetFacts, DatasetQuestion, ModelFacts, ModelQuestion, ProbeFacts, ProbeQuestion
from service.files.model import Weights, describe_model
from service.files.probe import describe_probe
from service.files.process import ask_child, unchecked

Question = ModelQuestion | ProbeQuestion | DatasetQuestion
Facts = ModelFacts | ProbeFacts | DatasetFacts
DEFLATE_RATIO = 1032  # nothing inflates further


@overload
async def check_file(path: Path, question: ModelQuestion) -> ModelFacts: ...
@overload
async def check_file(path: Path, question: ProbeQuestion) -> ProbeFacts: ...
@overload
async def check_file(path: Path, question: DatasetQuestion) -> DatasetFacts: ...


async def check_file(path: Path, question: Question) -> Facts:
    """What the file holds, or BadFile. Only a child process reads it."""
    with path.open("rb") as upload:
        size = os.fstat(upload.fileno()).st_size
        if isinstance(question, ModelQuestion | ProbeQuestion):
            answer = await ask_child(upload, {"format": "safetensors"}, work=size)
        else:
            limits = {"max_bytes": question.max_bytes, "max_side": MAX_SIDE, "max_channels": MAX_CHANNELS}
            work = size + min(question.max_bytes, DEFLATE_RATIO * size)
            answer = await ask_child(upload, {"format": "npz", **limits}, work=work)
    try:
        return _facts(question, answer)
    except ValidationError as error:
        raise unchecked("the check gave an answer that makes no sense", error=str(error)) from error


def _facts(question: Question, answer: dict[str, object]) -> Facts:
    if isinstance(question, ModelQuestion):
        return describe_model(question, Weights.model_validate(answer))
    if isinstance(question, ProbeQuestion):
        return describe_probe(question, Weights.model_validate(answer))
    return DatasetFacts.model_validate(answer)
