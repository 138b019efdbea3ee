import shutil
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from servers import new_database

from flashcards.contract.specs import job_spec
from ledger import jobs
from ledger.admission import Admitted
from ledger.db import Database
from ledger.migrate import migrate
from ledger.store import Store
from ledger.tables import DEFAULT_TENANT

SPEC = {"kind": "capture", "model": "model_" + "0" * 32, "count": 4}


def migrated(url: str) -> str:
    database = Database(url)
    migrate(database)
    database.close()
    return url


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "ledger.db"
    migrated(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_name(postgres_url) -> str:
    name = uuid4().hex
    migrated(new_database(postgres_url, name))
    return name


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request, tmp_path):
    """Of each kind that the service runs on, made by the real migrations: once, and every test has a copy."""
    if request.param == "sqlite":
        copy = shutil.copy(request.getfixturevalue("sqlite_file"), tmp_path / "ledger.db")
        url = f"sqlite:///{copy}"
    else:
        template = request.getfixturevalue("postgres_name")
        url = new_database(request.getfixturevalue("postgres_url"), uuid4().hex, template)
    database = Database(url)
    yield database
    database.close()


@pytest.fixture
def store(tmp_path):
    return Store(f"file://{tmp_path / 'store'}")


@pytest.fixture
def queue_job(db):
    def queue_job(**changes) -> str:
        spec = job_spec.validate_python({**SPEC, **changes})
        with db.write() as session:
            return jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue="cpu", inputs=[spec.model])).id

    return queue_job


@pytest.fixture
def empty(db, request, tmp_path):
    """Where a backup is restored to: of the other kind than `db`, without a table, and a store without a file."""
    there = f"sqlite:///{tmp_path / 'restored.db'}"
    if db.is_sqlite:
        there = new_database(request.getfixturevalue("postgres_url"), uuid4().hex)
    database = Database(there)
    yield SimpleNamespace(db=database, store=Store(f"file://{tmp_path / 'restored'}"))
    database.close()


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "folder"


@pytest.fixture(params=["folder", "file.tar"])
def target(request, tmp_path) -> Path:
    """What a backup may be."""
    return tmp_path / request.param
