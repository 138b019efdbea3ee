from pydantic import Field

from flashcards.contract.base import Record
from flashcards.contract.resources import Event, Job, MetricPoint


class Report(Record):
    """A job that has ended, with all that is on record of it: what was asked, what came of it, how it went."""

    job: Job
    names: dict[str, str] = Field(description="what the models, datasets, flashcards and learners in it are called")
    metrics: dict[str, list[MetricPoint]]
    history: list[Event] = Field(description="its states, notes and resume points; progress and log are left out")
