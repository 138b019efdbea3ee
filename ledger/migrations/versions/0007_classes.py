"""Learners of classes: the network that makes cards, heads that grow, and what was told apart"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)
JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    op.add_column("learner", sa.Column("autoencoder", JSON, nullable=True))
    op.add_column("learner", sa.Column("autoencoder_id", TEXT, nullable=True))
    op.add_column("version", sa.Column("architecture", JSON, nullable=True))
    op.add_column("version", sa.Column("classes", JSON, nullable=True))
    op.add_column("version", sa.Column("autoencoder_digest", TEXT, nullable=True))
    op.add_column("version", sa.Column("random_accuracy", sa.Float(53), nullable=True))
    op.create_index(op.f("ix_version_autoencoder_digest"), "version", ["autoencoder_digest"])


def downgrade() -> None:
    op.drop_index("ix_version_autoencoder_digest", table_name="version")
    for column in ("random_accuracy", "autoencoder_digest", "classes", "architecture"):
        op.drop_column("version", column)
    for column in ("autoencoder_id", "autoencoder"):
        op.drop_column("learner", column)
