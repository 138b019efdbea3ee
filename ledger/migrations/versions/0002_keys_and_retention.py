"""Keys, and what is kept for how long"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)
TIME = sa.Float(precision=53)


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("hint", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("scopes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("retain_data", sa.Boolean(), nullable=False),
        sa.Column("requests_per_minute", sa.BigInteger(), nullable=True),
        sa.Column("max_unfinished_jobs", sa.BigInteger(), nullable=True),
        sa.Column("max_stored_bytes", sa.BigInteger(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_api_key_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
    )
    op.create_index(op.f("ix_api_key_digest"), "api_key", ["digest"], unique=True)
    op.create_index(op.f("ix_api_key_tenant_id"), "api_key", ["tenant", "id"])

    # What was there before counts as touched when it was made.
    op.add_column("blob", sa.Column("touched_at", TIME, nullable=False, server_default="0"))
    op.execute("UPDATE blob SET touched_at = created_at")
    op.create_index(op.f("ix_blob_touched_at"), "blob", ["touched_at"])
    op.create_index(op.f("ix_blob_tenant_created_at_digest"), "blob", ["tenant", "created_at", "digest"])

    op.add_column("model", sa.Column("mapping", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("model", sa.Column("uploaded_digest", TEXT, nullable=True))
    op.create_index(op.f("ix_model_probe_digest"), "model", ["probe_digest"])
    op.create_index(op.f("ix_flashcards_digest"), "flashcards", ["digest"])
    op.create_index(op.f("ix_flashcards_sheet_digest"), "flashcards", ["sheet_digest"])

    op.add_column("dataset", sa.Column("uploaded_digest", TEXT, nullable=True))
    op.add_column("dataset", sa.Column("retain", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.add_column("dataset", sa.Column("expires_at", TIME, nullable=True))
    op.add_column("job", sa.Column("key_id", TEXT, nullable=True))
    op.add_column("artifact", sa.Column("shows_data", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(op.f("ix_artifact_role_digest"), "artifact", ["role", "digest"])


def downgrade() -> None:
    op.drop_index(op.f("ix_artifact_role_digest"), table_name="artifact")
    op.drop_column("artifact", "shows_data")
    op.drop_column("job", "key_id")
    for column in ("expires_at", "retain", "uploaded_digest"):
        op.drop_column("dataset", column)
    op.drop_index(op.f("ix_flashcards_sheet_digest"), table_name="flashcards")
    op.drop_index(op.f("ix_flashcards_digest"), table_name="flashcards")
    op.drop_index(op.f("ix_model_probe_digest"), table_name="model")
    for column in ("uploaded_digest", "mapping"):
        op.drop_column("model", column)
    op.drop_index(op.f("ix_blob_tenant_created_at_digest"), table_name="blob")
    op.drop_index(op.f("ix_blob_touched_at"), table_name="blob")
    op.drop_column("blob", "touched_at")
    op.drop_table("api_key")
