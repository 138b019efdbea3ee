from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

#: Ids are time-ordered (UUIDv7) behind the name of what they point to: `model_0198...`.
ModelId = Annotated[str, Field(pattern=r"^model_[0-9a-f]{32}$", examples=["model_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])]
DatasetId = Annotated[
    str, Field(pattern=r"^dataset_[0-9a-f]{32}$", examples=["dataset_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])
]
FlashcardsId = Annotated[
    str, Field(pattern=r"^flashcards_[0-9a-f]{32}$", examples=["flashcards_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])
]
JobId = Annotated[str, Field(pattern=r"^job_[0-9a-f]{32}$", examples=["job_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])]
LearnerId = Annotated[
    str, Field(pattern=r"^learner_[0-9a-f]{32}$", examples=["learner_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])
]

#: Names are labels for people: printable, one line, never a path and never a key.
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]

#: A queue of the broker. It becomes a key in Redis, or a folder.
QueueName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$", examples=["results.line-7"])]


def _written(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


#: Always three decimals, also on a whole second: the order of the texts is the order of the moments.
Moment = Annotated[
    datetime,
    PlainSerializer(_written, when_used="json-unless-none"),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-03-01T09:30:00.000Z"]}),
]


class Record(BaseModel):
    """A value that goes over the wire. Unknown fields are refused: a misspelt option must not pass in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
