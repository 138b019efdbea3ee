"""Capsules, and flashcards of which only the recipe is kept"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)


def upgrade() -> None:
    op.add_column("model", sa.Column("capsule_digest", TEXT, nullable=True))
    op.add_column("model", sa.Column("capsule", sa.JSON(none_as_null=True), nullable=True))
    op.create_index(op.f("ix_model_capsule_digest"), "model", ["capsule_digest"])
    op.add_column("flashcards", sa.Column("materialised", sa.Boolean(), nullable=False, server_default=sa.true()))


def downgrade() -> None:
    op.drop_column("flashcards", "materialised")
    op.drop_index(op.f("ix_model_capsule_digest"), table_name="model")
    for column in ("capsule", "capsule_digest"):
        op.drop_column("model", column)
