import subprocess
import sys
from uuid import uuid4

import pytest
from servers import new_database
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


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_processes_that_start_together_migrate_once(kind, request, tmp_path):
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'new.db'}"
    else:
        url = new_database(request.getfixturevalue("postgres_url"), uuid4().hex)
    code = f"from ledger.db import Database; from ledger.schema import ensure_schema; ensure_schema(Database({url!r}))"
    together = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in together] == [(b"", 0)] * 4
    db = Database(url)
    assert schema.found(db) == schema.newest()
    db.close()
