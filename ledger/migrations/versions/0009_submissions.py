"""Messages on the queue and what came of them, and what is to be announced"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)
JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    op.create_table(
        "submission",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=True),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("job_id", TEXT, nullable=True),
        sa.Column("problem", JSON, nullable=True),
        sa.Column("conflicts", JSON, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_submission_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submission")),
    )
    op.create_index(op.f("ix_submission_tenant_key"), "submission", ["tenant", "key"], unique=True)
    op.create_index(op.f("ix_submission_tenant_id"), "submission", ["tenant", "id"])
    op.create_index(op.f("ix_submission_job_id"), "submission", ["job_id"])
    op.create_index(op.f("ix_submission_created_at"), "submission", ["created_at"])
    op.create_table(
        "announcement",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("queue", TEXT, nullable=False),
        sa.Column("body", JSON, nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("due_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_announcement")),
    )
    op.create_index(op.f("ix_announcement_due_at"), "announcement", ["due_at"])


def downgrade() -> None:
    op.drop_table("announcement")
    op.drop_table("submission")
