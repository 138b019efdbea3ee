"""The end of a job and the end of its stream are one, however the two reads of a look fall."""

import asyncio
from types import SimpleNamespace
from uuid import uuid4

import pytest
from servers import new_database

from flashcards.contract.specs import job_spec
from ledger import jobs, lifecycle, outcomes
from ledger.admission import Admitted
from ledger.db import Database
from ledger.migrate import migrate
from ledger.tables import DEFAULT_TENANT
from service.jobs import stream
from service.watch import Watch


@pytest.fixture
def db(postgres_url):
    database = Database(new_database(postgres_url, uuid4().hex))
    migrate(database)
    yield database
    database.close()


def test_a_job_that_ends_between_the_two_reads_ends_its_stream(db, monkeypatch):
    """On PostgreSQL each query sees what was committed before it, and not before the first one."""
    spec = job_spec.validate_python({"kind": "noop"})
    with db.write() as session:
        job_id = jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue="cpu", inputs=[])).id
    claim = lifecycle.claim(db, "cpu", "worker_a", 60, job_id)
    reads = []

    def ending_after_the_first(read):
        def wrapped(*words):
            found = read(*words)
            reads.append(read.__name__)
            if len(reads) == 1:
                with db.write() as session:
                    assert outcomes.succeed(session, claim, {"worker": "worker_a"}, [])
            return found

        return wrapped

    monkeypatch.setattr(stream.jobs, "find", ending_after_the_first(stream.jobs.find))
    monkeypatch.setattr(stream.events, "after", ending_after_the_first(stream.events.after))

    async def all_of_it() -> bytes:
        house = SimpleNamespace(db=db, watch=Watch(db, tick_seconds=0.01))
        return b"".join([part async for part in stream.stream(house, DEFAULT_TENANT, job_id, 0)])

    said = asyncio.run(asyncio.wait_for(all_of_it(), timeout=10))
    assert said.count(b"event: state") == 3
    assert b"succeeded" in said
