"""Who asked for a job, since when it is queued, and an index to count jobs by"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)


def upgrade() -> None:
    op.add_column("job", sa.Column("request_id", TEXT, nullable=True))
    op.add_column("job", sa.Column("trace", TEXT, nullable=True))
    op.add_column("job", sa.Column("queued_at", sa.Float(53), nullable=True))
    op.create_index(op.f("ix_job_state_kind"), "job", ["state", "kind"])


def downgrade() -> None:
    op.drop_index("ix_job_state_kind", table_name="job")
    for column in ("queued_at", "trace", "request_id"):
        op.drop_column("job", column)
