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


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request, tmp_path):
    """A database made by the real migrations, of each kind that the service runs on."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'ledger.db'}"
    else:
        url = new_database(request.getfixturevalue("postgres_url"), uuid4().hex)
    database = Database(url)
    migrate(database)
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
