"""The record. Times are seconds since 1970 by the database's clock (`ledger.clock`)."""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from ledger.clock import now

Json = JSON(none_as_null=True)
DEFAULT_TENANT = "default"


class Table(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {
        dict[str, Any]: Json,
        list[Any]: Json,
        str: String(200),
        float: Float(53),
        int: BigInteger(),
        bool: Boolean(),
    }


class Tenant(Table):
    __tablename__ = "tenant"
    id: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[float] = mapped_column(default=now())


class ApiKey(Table):
    """The key itself is shown once and kept nowhere; `digest` is its HMAC."""

    __tablename__ = "api_key"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    name: Mapped[str]
    hint: Mapped[str]
    digest: Mapped[str]
    scopes: Mapped[list[Any]]
    retain_data: Mapped[bool]
    requests_per_minute: Mapped[int | None]
    max_unfinished_jobs: Mapped[int | None]
    max_stored_bytes: Mapped[int | None]
    created_at: Mapped[float] = mapped_column(default=now())
    expires_at: Mapped[float | None]
    revoked_at: Mapped[float | None]
    last_used_at: Mapped[float | None]
    __table_args__ = (Index(None, "digest", unique=True), Index(None, "tenant", "id"))


class Blob(Table):
    """Bytes in the store, under `{tenant}/{digest}`. `ledger.blobs` says how rows and bytes stay together."""

    __tablename__ = "blob"
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    created_at: Mapped[float] = mapped_column(default=now())
    touched_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (Index(None, "touched_at"), Index(None, "tenant", "created_at", "digest"))


class Model(Table):
    __tablename__ = "model"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    name: Mapped[str]
    architecture: Mapped[dict[str, Any]]
    input: Mapped[str]
    range: Mapped[list[Any]]
    parameters: Mapped[int]
    digest: Mapped[str]
    size: Mapped[int]
    origin: Mapped[str]
    job_id: Mapped[str | None]
    probe_digest: Mapped[str | None]
    capsule_digest: Mapped[str | None]
    capsule: Mapped[dict[str, Any] | None]  # its facts, with digest and size
    mapping: Mapped[dict[str, Any] | None]
    uploaded_digest: Mapped[str | None]
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (
        Index(None, "tenant", "id"),
        Index(None, "tenant", "digest"),
        Index(None, "probe_digest"),
        Index(None, "capsule_digest"),
    )


class Dataset(Table):
    __tablename__ = "dataset"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    name: Mapped[str]
    digest: Mapped[str]
    size: Mapped[int]
    format: Mapped[str]
    splits: Mapped[dict[str, Any]]
    preparation: Mapped[dict[str, Any] | None]
    uploaded_digest: Mapped[str | None]
    retain: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[float] = mapped_column(default=now())
    expires_at: Mapped[float | None]
    __table_args__ = (Index(None, "tenant", "id"), Index(None, "tenant", "digest"))


class Upload(Table):
    """A file that comes in parts (`ledger.uploads`). `answer` is what was said when it had become a resource."""

    __tablename__ = "upload"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    digest: Mapped[str]  # of the whole file, as its sender says: it is no blob
    size: Mapped[int]
    part_size: Mapped[int]
    linked: Mapped[bool] = mapped_column(default=False)  # somebody may put parts straight into the bucket
    answer: Mapped[dict[str, Any] | None]
    created_at: Mapped[float] = mapped_column(default=now())
    expires_at: Mapped[float]
    __table_args__ = (Index(None, "tenant", "id"), Index(None, "tenant", "digest"), Index(None, "expires_at"))


class UploadPart(Table):
    """A part that came through an API. What was put straight into the bucket has no row (`ledger.landing`)."""

    __tablename__ = "upload_part"
    upload_id: Mapped[str] = mapped_column(ForeignKey("upload.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    digest: Mapped[str]
    size: Mapped[int]
    __table_args__ = (Index(None, "tenant", "digest"),)


class Imported(Table):
    """Where a model or learner came from that a bundle brought, in the words of the bundle."""

    __tablename__ = "imported"
    id: Mapped[str] = mapped_column(primary_key=True)  # of the model or learner
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    told: Mapped[dict[str, Any]]  # `flashcards.contract.bundle.Imported`
    created_at: Mapped[float] = mapped_column(default=now())


class Flashcards(Table):
    __tablename__ = "flashcards"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    name: Mapped[str | None]
    model_id: Mapped[str]
    job_id: Mapped[str]
    recipe: Mapped[dict[str, Any]]
    digest: Mapped[str]
    size: Mapped[int]
    sheet_digest: Mapped[str]
    materialised: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (
        Index(None, "tenant", "id"),
        Index(None, "model_id"),
        Index(None, "digest"),
        Index(None, "sheet_digest"),
    )


class Learner(Table):
    """`version` is the head: what the next task starts from. Null: it has learnt nothing yet."""

    __tablename__ = "learner"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    name: Mapped[str]
    model_id: Mapped[str | None]
    compare_id: Mapped[str | None]  # the job that it was made for, and goes with
    scenario: Mapped[str]
    noise: Mapped[float]
    clip: Mapped[bool]
    architecture: Mapped[dict[str, Any]]
    autoencoder: Mapped[dict[str, Any] | None]  # of a learner of classes: of the network that makes cards
    autoencoder_id: Mapped[str | None]  # and the model that it began with
    input: Mapped[str | None]
    range: Mapped[list[Any]]
    version: Mapped[int | None]
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (Index(None, "tenant", "id"), Index(None, "compare_id"))


class Version(Table):
    """A learner after a task. Rows are added and never changed; `parent` leads back to the first."""

    __tablename__ = "version"
    learner_id: Mapped[str] = mapped_column(ForeignKey("learner.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    parent: Mapped[int | None]
    job_id: Mapped[str | None]
    task: Mapped[str]
    dataset_id: Mapped[str | None]
    test_dataset_id: Mapped[str | None]
    repeated: Mapped[bool] = mapped_column(default=False)
    strategy: Mapped[dict[str, Any] | None]
    digest: Mapped[str]
    size: Mapped[int]
    state_digest: Mapped[str | None]
    images_digest: Mapped[str | None]
    architecture: Mapped[dict[str, Any] | None]  # null: the learner's; heads grow from task to task
    classes: Mapped[dict[str, Any] | None]  # `ledger.class_fits.TaskClasses`, of its own task
    autoencoder_digest: Mapped[str | None]
    capsule: Mapped[dict[str, Any] | None]  # facts of the one that its own task left
    measures: Mapped[list[Any]]
    before: Mapped[dict[str, Any] | None]
    random_mae: Mapped[float | None]
    random_accuracy: Mapped[float | None]
    recipes: Mapped[list[Any]]
    memory: Mapped[dict[str, Any]]
    keeps_data: Mapped[bool] = mapped_column(default=False)
    seconds: Mapped[float | None]
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (
        Index(None, "tenant", "digest"),
        Index(None, "state_digest"),
        Index(None, "images_digest"),
        Index(None, "autoencoder_digest"),
    )


class VersionCapsule(Table):
    """What a version keeps of one of its tasks. A task without a capsule has no row; 1 is the first task."""

    __tablename__ = "version_capsule"
    learner_id: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    task: Mapped[int] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    digest: Mapped[str]
    size: Mapped[int]
    __table_args__ = (
        ForeignKeyConstraint(["learner_id", "number"], ["version.learner_id", "version.number"], ondelete="CASCADE"),
        Index(None, "tenant", "digest"),
    )


class Job(Table):
    """Only `ledger.lifecycle` writes `state`."""

    __tablename__ = "job"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    key_id: Mapped[str | None]
    kind: Mapped[str]
    parent_id: Mapped[str | None]  # who waits for it (`ledger.parents`)
    learner_id: Mapped[str | None]  # whose turn it takes (`ledger.turns`)
    base_version: Mapped[int | None]  # the version that its last attempt started from
    queue: Mapped[str]
    state: Mapped[str]
    spec: Mapped[dict[str, Any]]
    labels: Mapped[dict[str, Any]]
    attempt: Mapped[int] = mapped_column(default=0)
    strikes: Mapped[int] = mapped_column(default=0)
    max_attempts: Mapped[int]
    timeout_seconds: Mapped[int | None]
    deadline: Mapped[float | None]
    lease_until: Mapped[float | None]
    worker_id: Mapped[str | None]
    cancel_requested_at: Mapped[float | None]
    request_id: Mapped[str | None]  # the request that asked for it, and where in the caller's trace that was:
    trace: Mapped[str | None]  # a W3C traceparent (`ledger.tracing`)
    rung_at: Mapped[float | None] = mapped_column(default=now())
    seq: Mapped[int] = mapped_column(default=0)
    progress: Mapped[dict[str, Any]]
    result: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[float] = mapped_column(default=now())
    queued_at: Mapped[float | None] = mapped_column(default=now())  # the last time that it went to the queue
    started_at: Mapped[float | None]
    ended_at: Mapped[float | None]
    __table_args__ = (
        Index(None, "tenant", "id"),
        Index(None, "tenant", "state", "id"),
        Index(None, "tenant", "kind", "id"),
        Index(None, "state", "queue", "id"),
        Index(None, "state", "kind"),  # counted at every scrape, without a look at the rows
        Index("ix_job_lease", "lease_until", sqlite_where=text("lease_until IS NOT NULL")),
        Index(
            "ix_job_turn",
            "learner_id",
            "state",
            "id",
            sqlite_where=text("learner_id IS NOT NULL"),
            postgresql_where=text("learner_id IS NOT NULL"),
        ),
        Index(
            "ix_job_parent",
            "parent_id",
            "state",
            sqlite_where=text("parent_id IS NOT NULL"),
            postgresql_where=text("parent_id IS NOT NULL"),
        ),
    )


class JobInput(Table):
    """What a job reads. A model or dataset that an unfinished job names here can't be deleted."""

    __tablename__ = "job_input"
    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    resource_id: Mapped[str] = mapped_column(primary_key=True)
    __table_args__ = (Index(None, "resource_id"),)


class Attempt(Table):
    """One try at a job by one worker. Its number is the fencing token."""

    __tablename__ = "attempt"
    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    worker_id: Mapped[str]
    started_at: Mapped[float] = mapped_column(default=now())
    ended_at: Mapped[float | None]
    outcome: Mapped[str | None]
    reason: Mapped[str | None] = mapped_column(Text)


class Submission(Table):
    """What came of a message on the queue (`ledger.submissions`). Without a tenant: nobody vouched for it."""

    __tablename__ = "submission"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str | None] = mapped_column(ForeignKey("tenant.id"))
    key: Mapped[str]  # the id that the producer chose
    fingerprint: Mapped[str]
    job_id: Mapped[str | None]
    problem: Mapped[dict[str, Any] | None]
    conflicts: Mapped[list[Any]] = mapped_column(default=list)
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (
        Index(None, "tenant", "key", unique=True),
        Index(None, "tenant", "id"),
        Index(None, "job_id"),
        Index(None, "created_at"),
    )


class Announcement(Table):
    """What is to be said on a queue of a caller's choice. The row goes when it was said (`ledger.announcements`)."""

    __tablename__ = "announcement"
    id: Mapped[str] = mapped_column(primary_key=True)
    queue: Mapped[str]
    body: Mapped[dict[str, Any]]
    tries: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[float] = mapped_column(default=now())
    due_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (Index(None, "due_at"),)


class Event(Table):
    __tablename__ = "event"
    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    attempt: Mapped[int]
    data: Mapped[dict[str, Any]]
    at: Mapped[float] = mapped_column(default=now())


class Metric(Table):
    __tablename__ = "metric"
    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float]


class Artifact(Table):
    """A file that a job made: a `product` for the user, or a `resume_point` for the next attempt."""

    __tablename__ = "artifact"
    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    role: Mapped[str]
    media_type: Mapped[str]
    digest: Mapped[str]
    size: Mapped[int]
    attempt: Mapped[int]
    shows_data: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (Index(None, "digest"), Index(None, "role", "digest"))


class Webhook(Table):
    """Who is told of what. `seed` is what its secret is made from (`ledger.webhooks`)."""

    __tablename__ = "webhook"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    name: Mapped[str | None]
    url: Mapped[str] = mapped_column(Text)
    events: Mapped[list[Any]]
    labels: Mapped[dict[str, Any]]
    seed: Mapped[str]
    hint: Mapped[str]
    previous_seed: Mapped[str | None]
    previous_until: Mapped[float | None]
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (Index(None, "tenant", "id"),)


class Delivery(Table):
    """One event for one webhook, however often it is sent. `ledger.deliveries` says how it gets there.

    Jobs and learners may be deleted before it does.
    """

    __tablename__ = "delivery"
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"))
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhook.id", ondelete="CASCADE"))
    type: Mapped[str]
    job_id: Mapped[str | None]
    learner_id: Mapped[str | None]
    data: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(default="pending")
    tries: Mapped[int] = mapped_column(default=0)
    tries_before: Mapped[int] = mapped_column(default=0)  # those before it was last asked for again
    due_at: Mapped[float | None] = mapped_column(default=now())  # null unless it is pending
    leased_until: Mapped[float | None]  # while a try is under way
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (
        Index(None, "webhook_id", "id"),
        Index(None, "state", "created_at"),
        Index(
            "ix_delivery_due",
            "due_at",
            "webhook_id",
            sqlite_where=text("due_at IS NOT NULL"),
            postgresql_where=text("due_at IS NOT NULL"),
        ),
    )


class DeliveryTry(Table):
    """`seconds` is null while it is under way, and for ever if its worker was killed meanwhile."""

    __tablename__ = "delivery_try"
    delivery_id: Mapped[str] = mapped_column(ForeignKey("delivery.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    started_at: Mapped[float] = mapped_column(default=now())
    seconds: Mapped[float | None]
    status: Mapped[int | None] = mapped_column(Integer())
    reason: Mapped[str | None] = mapped_column(Text)


class Mirror(Table):
    """What a tracking server has been told of a job, and when it is told more. `ledger.mirrors` writes it.

    All that it is to be told is on record, so a row says only how far it came: `seq` and `told`, the last step of each
    metric.
    """

    __tablename__ = "mirror"
    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    run_id: Mapped[str | None]
    seq: Mapped[int] = mapped_column(default=0)
    told: Mapped[dict[str, Any]]
    tries: Mapped[int] = mapped_column(default=0)  # in vain, in a row
    warned: Mapped[bool] = mapped_column(default=False)
    due_at: Mapped[float | None] = mapped_column(default=now())  # null: it knows everything
    __table_args__ = (
        Index(
            "ix_mirror_due",
            "due_at",
            sqlite_where=text("due_at IS NOT NULL"),
            postgresql_where=text("due_at IS NOT NULL"),
        ),
    )


class Idempotency(Table):
    """`status` is null while the first request with this key is under way."""

    __tablename__ = "idempotency"
    tenant: Mapped[str] = mapped_column(ForeignKey("tenant.id"), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    holder: Mapped[str]
    locked_until: Mapped[float]
    fingerprint: Mapped[str | None]
    status: Mapped[int | None] = mapped_column(Integer())
    location: Mapped[str | None]
    body: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[float] = mapped_column(default=now())
    __table_args__ = (Index(None, "created_at"),)


class Worker(Table):
    __tablename__ = "worker"
    id: Mapped[str] = mapped_column(primary_key=True)
    queue: Mapped[str]
    host: Mapped[str]
    pid: Mapped[int]
    started_at: Mapped[float] = mapped_column(default=now())
    seen_at: Mapped[float] = mapped_column(default=now())
