from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from ledger.migrate import alembic_config, migrate
from ledger.tables import Table


def test_tables_and_migrations_agree(db):
    with db.bind.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Table.metadata) == []


def test_running_it_again_changes_nothing(db):
    migrate(db)
    assert set(Table.metadata.tables) <= set(inspect(db.bind).get_table_names())


def test_it_goes_all_the_way_back(db):
    with db.bind.execution_options(writing=True).begin() as connection:
        command.downgrade(alembic_config(connection), "base")
    assert set(inspect(db.bind).get_table_names()) <= {"alembic_version"}
