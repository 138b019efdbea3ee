"""The ground floor"""

import sqlalchemy as sa
from alembic import op

from ledger.clock import now

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tenant",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenant")),
    )
    op.create_table(
        "worker",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("queue", sa.String(length=200), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=False),
        sa.Column("seen_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
    )
    op.create_table(
        "blob",
        sa.Column("tenant", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_blob_tenant")),
        sa.PrimaryKeyConstraint("tenant", "digest", name=op.f("pk_blob")),
    )
    op.create_table(
        "dataset",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("tenant", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("format", sa.String(length=200), nullable=False),
        sa.Column("splits", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_dataset_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset")),
    )
    with op.batch_alter_table("dataset", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_dataset_tenant_digest"), ["tenant", "digest"], unique=False)
        batch_op.create_index(batch_op.f("ix_dataset_tenant_id"), ["tenant", "id"], unique=False)

    op.create_table(
        "flashcards",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("tenant", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=True),
        sa.Column("model_id", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("recipe", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("digest", sa.String(length=200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sheet_digest", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_flashcards_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flashcards")),
    )
    with op.batch_alter_table("flashcards", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_flashcards_model_id"), ["model_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_flashcards_tenant_id"), ["tenant", "id"], unique=False)

    op.create_table(
        "idempotency",
        sa.Column("tenant", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=False),
        sa.Column("locked_until", sa.Float(precision=53), nullable=False),
        sa.Column("fingerprint", sa.String(length=200), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("location", sa.String(length=200), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_idempotency_tenant")),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("pk_idempotency")),
    )
    with op.batch_alter_table("idempotency", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_idempotency_created_at"), ["created_at"], unique=False)

    op.create_table(
        "job",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("tenant", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=200), nullable=False),
        sa.Column("queue", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=200), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("labels", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("strikes", sa.BigInteger(), nullable=False),
        sa.Column("max_attempts", sa.BigInteger(), nullable=False),
        sa.Column("timeout_seconds", sa.BigInteger(), nullable=True),
        sa.Column("deadline", sa.Float(precision=53), nullable=True),
        sa.Column("lease_until", sa.Float(precision=53), nullable=True),
        sa.Column("worker_id", sa.String(length=200), nullable=True),
        sa.Column("cancel_requested_at", sa.Float(precision=53), nullable=True),
        sa.Column("rung_at", sa.Float(precision=53), nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=True),
        sa.Column("ended_at", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_job_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.create_index(
            "ix_job_lease", ["lease_until"], unique=False, sqlite_where=sa.text("lease_until IS NOT NULL")
        )
        batch_op.create_index(batch_op.f("ix_job_state_queue_id"), ["state", "queue", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_job_tenant_id"), ["tenant", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_job_tenant_kind_id"), ["tenant", "kind", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_job_tenant_state_id"), ["tenant", "state", "id"], unique=False)

    op.create_table(
        "model",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("tenant", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("architecture", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("input", sa.String(length=200), nullable=False),
        sa.Column("range", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("parameters", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(length=200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("origin", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.String(length=200), nullable=True),
        sa.Column("probe_digest", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_model_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model")),
    )
    with op.batch_alter_table("model", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_model_tenant_digest"), ["tenant", "digest"], unique=False)
        batch_op.create_index(batch_op.f("ix_model_tenant_id"), ["tenant", "id"], unique=False)

    op.create_table(
        "artifact",
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=200), nullable=False),
        sa.Column("media_type", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_artifact_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "name", name=op.f("pk_artifact")),
    )
    with op.batch_alter_table("artifact", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_artifact_digest"), ["digest"], unique=False)

    op.create_table(
        "attempt",
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("worker_id", sa.String(length=200), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=False),
        sa.Column("ended_at", sa.Float(precision=53), nullable=True),
        sa.Column("outcome", sa.String(length=200), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_attempt_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "number", name=op.f("pk_attempt")),
    )
    op.create_table(
        "event",
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=200), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_event_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_event")),
    )
    op.create_table(
        "job_input",
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("resource_id", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_input_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "resource_id", name=op.f("pk_job_input")),
    )
    with op.batch_alter_table("job_input", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_job_input_resource_id"), ["resource_id"], unique=False)

    op.create_table(
        "metric",
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_metric_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "name", "step", "attempt", name=op.f("pk_metric")),
    )
    tenant = sa.table("tenant", sa.column("id"), sa.column("created_at"))
    op.execute(sa.insert(tenant).values(id="default", created_at=now()))


def downgrade() -> None:
    op.drop_table("metric")
    with op.batch_alter_table("job_input", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_job_input_resource_id"))

    op.drop_table("job_input")
    op.drop_table("event")
    op.drop_table("attempt")
    with op.batch_alter_table("artifact", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_artifact_digest"))

    op.drop_table("artifact")
    with op.batch_alter_table("model", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_model_tenant_id"))
        batch_op.drop_index(batch_op.f("ix_model_tenant_digest"))

    op.drop_table("model")
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_job_tenant_state_id"))
        batch_op.drop_index(batch_op.f("ix_job_tenant_kind_id"))
        batch_op.drop_index(batch_op.f("ix_job_tenant_id"))
        batch_op.drop_index(batch_op.f("ix_job_state_queue_id"))
        batch_op.drop_index("ix_job_lease", sqlite_where=sa.text("lease_until IS NOT NULL"))

    op.drop_table("job")
    with op.batch_alter_table("idempotency", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_idempotency_created_at"))

    op.drop_table("idempotency")
    with op.batch_alter_table("flashcards", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_flashcards_tenant_id"))
        batch_op.drop_index(batch_op.f("ix_flashcards_model_id"))

    op.drop_table("flashcards")
    with op.batch_alter_table("dataset", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_dataset_tenant_id"))
        batch_op.drop_index(batch_op.f("ix_dataset_tenant_digest"))

    op.drop_table("dataset")
    op.drop_table("blob")
    op.drop_table("worker")
    op.drop_table("tenant")
