"""What was done to the images of a dataset"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("dataset", sa.Column("preparation", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("dataset", "preparation")
