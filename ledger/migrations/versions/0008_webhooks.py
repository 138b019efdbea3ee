"""Webhooks, their deliveries and every try of them"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)
TIME = sa.Float(precision=53)
JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    op.create_table(
        "webhook",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", JSON, nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("seed", TEXT, nullable=False),
        sa.Column("hint", TEXT, nullable=False),
        sa.Column("previous_seed", TEXT, nullable=True),
        sa.Column("previous_until", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_webhook_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook")),
    )
    op.create_index(op.f("ix_webhook_tenant_id"), "webhook", ["tenant", "id"])
    op.create_table(
        "delivery",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("webhook_id", TEXT, nullable=False),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("job_id", TEXT, nullable=True),
        sa.Column("learner_id", TEXT, nullable=True),
        sa.Column("data", JSON, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("tries_before", sa.BigInteger(), nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.Column("leased_until", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_delivery_tenant")),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhook.id"], name=op.f("fk_delivery_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
    )
    op.create_index(op.f("ix_delivery_webhook_id_id"), "delivery", ["webhook_id", "id"])
    op.create_index(op.f("ix_delivery_state_created_at"), "delivery", ["state", "created_at"])
    pending = sa.text("due_at IS NOT NULL")
    op.create_index(
        "ix_delivery_due", "delivery", ["due_at", "webhook_id"], sqlite_where=pending, postgresql_where=pending
    )
    op.create_table(
        "delivery_try",
        sa.Column("delivery_id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seconds", TIME, nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["delivery.id"], name=op.f("fk_delivery_try_delivery_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("delivery_id", "number", name=op.f("pk_delivery_try")),
    )


def downgrade() -> None:
    for table in ("delivery_try", "delivery", "webhook"):
        op.drop_table(table)
