"""Run by Alembic, always with a connection from `ledger.migrate`."""

from alembic import context

from ledger.tables import Table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    render_as_batch=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
