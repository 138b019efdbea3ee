import os
from pathlib import Path
from typing import overload

from pydantic import ValidationError

from flashcards.contract.image import MAX_CHANNELS, MAX_SIDE
from service.files.facts import DatasetFacts, DatasetQuestion, ModelFacts, ModelQuestion
from service.files.model import Weights, describe_model
from service.files.process import ask_child, unchecked

DEFLATE_RATIO = 1032  # nothing inflates further


@overload
async def check_file(path: Path, question: ModelQuestion) -> ModelFacts: ...
@overload
async def check_file(path: Path, question: DatasetQuestion) -> DatasetFacts: ...


async def check_file(path: Path, question: ModelQuestion | DatasetQuestion) -> ModelFacts | DatasetFacts:
    """What the file holds, or BadFile. Only a child process reads it."""
    with path.open("rb") as upload:
        size = os.fstat(upload.fileno()).st_size
        if isinstance(question, ModelQuestion):
            answer = await ask_child(upload, {"format": "safetensors"}, work=size)
        else:
            limits = {"max_bytes": question.max_bytes, "max_side": MAX_SIDE, "max_channels": MAX_CHANNELS}
            work = size + min(question.max_bytes, DEFLATE_RATIO * size)
            answer = await ask_child(upload, {"format": "npz", **limits}, work=work)
    try:
        return _facts(question, answer)
    except ValidationError as error:
        raise unchecked("the check gave an answer that makes no sense", error=str(error)) from error


def _facts(question: ModelQuestion | DatasetQuestion, answer: dict[str, object]) -> ModelFacts | DatasetFacts:
    if isinstance(question, ModelQuestion):
        return describe_model(question, Weights.model_validate(answer))
    return DatasetFacts.model_validate(answer)
