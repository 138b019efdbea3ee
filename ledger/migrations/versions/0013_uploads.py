"""Large files that come in parts"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)


def upgrade() -> None:
    op.create_table(
        "upload",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("part_size", sa.BigInteger(), nullable=False),
        sa.Column("linked", sa.Boolean(), nullable=False),
        sa.Column("answer", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("expires_at", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_upload_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upload")),
    )
    op.create_index(op.f("ix_upload_tenant_id"), "upload", ["tenant", "id"])
    op.create_index(op.f("ix_upload_tenant_digest"), "upload", ["tenant", "digest"])
    op.create_index(op.f("ix_upload_expires_at"), "upload", ["expires_at"])
    op.create_table(
        "upload_part",
        sa.Column("upload_id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["upload.id"], name=op.f("fk_upload_part_upload_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_upload_part_tenant")),
        sa.PrimaryKeyConstraint("upload_id", "number", name=op.f("pk_upload_part")),
    )
    op.create_index(op.f("ix_upload_part_tenant_digest"), "upload_part", ["tenant", "digest"])


def downgrade() -> None:
    op.drop_table("upload_part")
    op.drop_table("upload")
