import pytest
from sqlalchemy import text

from ledger import schema
from ledger.db import Database


def test_an_empty_database_gets_its_tables(tmp_path):
    db = Database(f"sqlite:///{tmp_path / 'new.db'}")
    assert schema.found(db) is None
    schema.ensure_schema(db)
    assert schema.found(db) == schema.newest()
    schema.ensure_schema(db)
    db.close()


def test_a_database_from_the_future_is_left_alone(db):
    with db.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SystemExit, match="newer than this program"):
        schema.ensure_schema(db)
