"""Webhooks: who is told of what, and how that went. Signed as https://www.standardwebhooks.com says."""

from typing import Annotated, Any, Literal

from pydantic import Field

from flashcards.contract.base import JobId, LearnerId, Moment, Name, Record
from flashcards.contract.specs import JobKind, Labels

WebhookId = Annotated[
    str, Field(pattern=r"^webhook_[0-9a-f]{32}$", examples=["webhook_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])
]
DeliveryId = Annotated[
    str, Field(pattern=r"^delivery_[0-9a-f]{32}$", examples=["delivery_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])
]
EventType = Literal["job.succeeded", "job.failed", "job.cancelled", "learner.version.created", "learner.budget.broken"]
DeliveryState = Literal["pending", "delivered", "given_up"]
LONGEST_GRACE_HOURS = 168
Url = Annotated[
    str,
    Field(
        min_length=9,
        max_length=2000,
        pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://[\x21-\x7e]+$",
        examples=["https://hooks.example/flashcards"],
    ),
]


class NewWebhook(Record):
    url: Url = Field(description="where deliveries are posted to: https, at an address of the internet")
    events: list[EventType] = Field(min_length=1, max_length=5, description="what to be told of")
    labels: Labels = Field(default={}, description="only of jobs that have all of these")
    name: Name | None = None


class Webhook(Record):
    id: WebhookId
    name: str | None = None
    url: str
    events: list[EventType]
    labels: dict[str, str]
    hint: str = Field(description="how its secret begins")
    previous_until: Moment | None = Field(
        default=None, description="until then deliveries are signed with the secret before as well"
    )
    created_at: Moment


class MadeWebhook(Webhook):
    secret: str | None = Field(
        description="what deliveries are signed with; shown this once, null when the answer is a replay"
    )


class Rotation(Record):
    grace_hours: float = Field(
        default=24, ge=0, le=LONGEST_GRACE_HOURS, description="how long the secret before signs as well"
    )


class Try(Record):
    number: int
    at: Moment
    seconds: float | None = Field(default=None, description="how long it took; null while it is under way")
    status: int | None = Field(default=None, description="what the receiver answered, if it did")
    reason: str | None = Field(default=None, description="why it was not taken; null where it was")


class Delivery(Record):
    id: DeliveryId = Field(description="`webhook-id` of every try: a receiver that has seen it may drop it")
    webhook: WebhookId
    type: EventType
    state: DeliveryState
    created_at: Moment
    next_try_at: Moment | None = None
    job: JobId | None = None
    learner: LearnerId | None = None
    tries: list[Try] = Field(description="in order, the last fifty")


class JobLinks(Record):
    """Paths of this service, or whole addresses where it knows its own (`FLASHCARDS_PUBLIC_URL`)."""

    job: str
    report: str
    learner: str | None = None
    version: str | None = None


class EventData(Record):
    """What is said of a job or learner: enough to go and look, no more."""

    job: JobId
    kind: JobKind
    state: Literal["succeeded", "failed", "cancelled"]
    labels: dict[str, str]
    parent: JobId | None = None
    learner: LearnerId | None = None
    version: int | None = Field(default=None, description="of the learner, where the job made one")
    made: dict[str, str] = Field(default={}, description="ids of what the job made, such as `model`")
    error: dict[str, Any] | None = Field(default=None, description="type and title, of a failed job")
    links: JobLinks


class WebhookBody(Record):
    """What a receiver is sent."""

    type: EventType
    timestamp: Moment
    data: EventData
