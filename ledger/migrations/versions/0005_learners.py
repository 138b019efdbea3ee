"""Learners, their versions, and the turns of their jobs"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TEXT = sa.String(length=200)
LEARNT = sa.text("learner_id IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "learner",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("model_id", TEXT, nullable=True),
        sa.Column("scenario", TEXT, nullable=False),
        sa.Column("noise", sa.Float(53), nullable=False),
        sa.Column("clip", sa.Boolean(), nullable=False),
        sa.Column("architecture", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("input", TEXT, nullable=True),
        sa.Column("range", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_learner_tenant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_learner")),
    )
    op.create_index(op.f("ix_learner_tenant_id"), "learner", ["tenant", "id"])
    _create_versions()
    op.add_column("job", sa.Column("learner_id", TEXT, nullable=True))
    op.add_column("job", sa.Column("base_version", sa.BigInteger(), nullable=True))
    turn = ["learner_id", "state", "id"]
    op.create_index("ix_job_turn", "job", turn, sqlite_where=LEARNT, postgresql_where=LEARNT)


def _create_versions() -> None:
    op.create_table(
        "version",
        sa.Column("learner_id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("parent", sa.BigInteger(), nullable=True),
        sa.Column("job_id", TEXT, nullable=True),
        sa.Column("task", TEXT, nullable=False),
        sa.Column("dataset_id", TEXT, nullable=True),
        sa.Column("test_dataset_id", TEXT, nullable=True),
        sa.Column("repeated", sa.Boolean(), nullable=False),
        sa.Column("strategy", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("state_digest", TEXT, nullable=True),
        sa.Column("images_digest", TEXT, nullable=True),
        sa.Column("capsule", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("measures", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("random_mae", sa.Float(53), nullable=True),
        sa.Column("recipes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("memory", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("keeps_data", sa.Boolean(), nullable=False),
        sa.Column("seconds", sa.Float(53), nullable=True),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_version_learner_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_version_tenant")),
        sa.PrimaryKeyConstraint("learner_id", "number", name=op.f("pk_version")),
    )
    op.create_index(op.f("ix_version_tenant_digest"), "version", ["tenant", "digest"])
    op.create_index(op.f("ix_version_state_digest"), "version", ["state_digest"])
    op.create_index(op.f("ix_version_images_digest"), "version", ["images_digest"])
    op.create_table(
        "version_capsule",
        sa.Column("learner_id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id", "number"],
            ["version.learner_id", "version.number"],
            name=op.f("fk_version_capsule_learner_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=op.f("fk_version_capsule_tenant")),
        sa.PrimaryKeyConstraint("learner_id", "number", "task", name=op.f("pk_version_capsule")),
    )
    op.create_index(op.f("ix_version_capsule_tenant_digest"), "version_capsule", ["tenant", "digest"])


def downgrade() -> None:
    op.drop_index("ix_job_turn", table_name="job")
    for column in ("base_version", "learner_id"):
        op.drop_column("job", column)
    for table in ("version_capsule", "version", "learner"):
        op.drop_table(table)
