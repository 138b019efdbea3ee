"""Jobs that wait for children, and the learners that a comparison has"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)
HAS_PARENT = sa.text("parent_id IS NOT NULL")


def upgrade() -> None:
    op.add_column("job", sa.Column("parent_id", TEXT, nullable=True))
    op.create_index(
        "ix_job_parent", "job", ["parent_id", "state"], sqlite_where=HAS_PARENT, postgresql_where=HAS_PARENT
    )
    op.add_column("learner", sa.Column("compare_id", TEXT, nullable=True))
    op.create_index(op.f("ix_learner_compare_id"), "learner", ["compare_id"])


def downgrade() -> None:
    op.drop_index("ix_learner_compare_id", table_name="learner")
    op.drop_column("learner", "compare_id")
    op.drop_index("ix_job_parent", table_name="job")
    op.drop_column("job", "parent_id")
