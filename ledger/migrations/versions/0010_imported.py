"""Where models and learners came from that a bundle brought"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)


def upgrade() -> None:
    op.create_table(
        "imported",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("told", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_imported_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_imported")),
    )


def downgrade() -> None:
    op.drop_table("imported")
