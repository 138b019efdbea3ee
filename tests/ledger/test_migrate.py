from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from rows import every_row, fill_every_table
from sqlalchemy import inspect, text

from ledger.migrate import alembic_config, migrate
from ledger.schema import VERSIONS
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


def revisions() -> list[str]:
    return sorted(path.name.split("_")[0] for path in VERSIONS.glob("[0-9]*.py"))


def in_common(before: dict, after: dict) -> list[dict]:
    """Both, cut down to the tables and columns that both have."""
    columns = {
        name: set(before[name][0]) & set(after[name][0])
        for name in before.keys() & after.keys()
        if before[name] and after[name]
    }
    return [
        {
            name: sorted(({column: row[column] for column in sorted(columns[name])} for row in rows[name]), key=str)
            for name in columns
        }
        for rows in (before, after)
    ]


def test_step_by_step_down_and_up_with_rows_in_every_table(db, store, tmp_path):
    """What a step does not take away it leaves as it was."""
    fill_every_table(db, store, tmp_path)
    steps = revisions()
    with db.bind.execution_options(writing=True).begin() as connection:
        whole = rows = every_row(connection)
        for revision in [*reversed(steps[:-1]), *steps[1:]]:
            up = revision > connection.scalar(text("SELECT version_num FROM alembic_version"))
            (command.upgrade if up else command.downgrade)(alembic_config(connection), revision)
            moved = every_row(connection)
            before, after = in_common(rows, moved)
            assert before == after, revision
            assert [name for name in rows.keys() & moved.keys() if len(rows[name]) != len(moved[name])] == [], revision
            rows = moved
            if revision == steps[0]:
                ground = moved
        assert compare_metadata(MigrationContext.configure(connection), Table.metadata) == []
    for end in (whole, rows):
        before, after = in_common(ground, end)
        assert before == after
    assert {"job", "event", "artifact", "model", "dataset", "blob", "tenant"} <= set(before)
