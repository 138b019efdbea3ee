"""The queue as a door: what a producer sends, what came of it, and what is said on a queue of its choice."""

from typing import Annotated, Any, Literal

from pydantic import Field

from flashcards.contract.base import JobId, Moment, QueueName, Record
from flashcards.contract.resources import JobSummary, Problem

#: Chosen by the producer; it becomes part of a path.
SubmissionId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$", examples=["line-7-2026-03-01", "5f0c6d2e-8a41"])
]
SubmissionState = Literal["accepted", "rejected"]


class Submit(Record):
    """The message `flashcards.submit`. `job` is read once it is known who asks."""

    id: SubmissionId
    token: str | None = Field(default=None, description="an API key, where the service has keys")
    job: dict[str, Any] = Field(description="the body of POST /v1/jobs")
    reply_to: QueueName | None = Field(default=None, description="where the answer is said as well")


class Refusal(Record):
    problem: Problem
    at: Moment


class Submission(Record):
    """What came of a message. It stays as it is: another try takes another id."""

    id: SubmissionId
    state: SubmissionState
    job: JobId | None = Field(default=None, description="the job it became")
    problem: Problem | None = Field(default=None, description="why it was rejected")
    conflicts: list[Refusal] = Field(
        default=[], description="messages with the same id and another body, the last ten: none of them became a job"
    )
    created_at: Moment


class Announcement(Record):
    """The kwargs of the task `flashcards.announce`. It may come twice, with the same `id`."""

    id: str
    event: str = Field(description="submission.accepted, submission.rejected, job.succeeded, job.failed, job.cancelled")
    submission: SubmissionId | None = Field(default=None, description="the id that the producer chose")
    job: JobSummary | None = None
    problem: Problem | None = None
