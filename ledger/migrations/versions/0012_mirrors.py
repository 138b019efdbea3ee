"""What a tracking server has been told of each job"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)
IS_DUE = sa.text("due_at IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "mirror",
        sa.Column("job_id", TEXT, nullable=False),
        sa.Column("run_id", TEXT, nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("told", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("warned", sa.Boolean(), nullable=False),
        sa.Column("due_at", sa.Float(53), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_mirror_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_mirror")),
    )
    op.create_index("ix_mirror_due", "mirror", ["due_at"], sqlite_where=IS_DUE, postgresql_where=IS_DUE)


def downgrade() -> None:
    op.drop_table("mirror")
