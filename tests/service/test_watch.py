import asyncio

import pytest
from sqlalchemy import update

from flashcards.contract.specs import job_spec
from ledger import jobs
from ledger.admission import Admitted
from ledger.db import Database
from ledger.migrate import migrate
from ledger.tables import DEFAULT_TENANT, Job
from service.watch import Watch


@pytest.fixture
def db(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    migrate(database)
    yield database
    database.close()


@pytest.fixture
def job_id(db):
    spec = job_spec.validate_python({"kind": "capture", "model": "model_" + "0" * 32})
    with db.write() as session:
        return jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue="cpu", inputs=[spec.model])).id


def raise_seq(db, job_id):
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(seq=Job.seq + 1))


def test_everybody_who_watches_is_woken_by_one_poller(db, job_id):
    async def scene():
        watch = Watch(db, tick_seconds=0.01)
        watchers = [asyncio.create_task(watch.changed(job_id, 1, timeout=10)) for _ in range(50)]
        await asyncio.sleep(0.05)
        assert not any(watcher.done() for watcher in watchers)
        await asyncio.to_thread(raise_seq, db, job_id)
        assert all(await asyncio.gather(*watchers))
        assert not watch._waiting

    asyncio.run(scene())


def test_time_is_up_and_jobs_that_are_gone_are_told_apart(db, job_id):
    async def scene():
        watch = Watch(db, tick_seconds=0.01)
        assert not await watch.changed(job_id, 1, timeout=0.05)
        assert await watch.changed("job_" + "f" * 32, 1, timeout=10)
        assert not watch._waiting

    asyncio.run(scene())


def test_closing_lets_everybody_go(db, job_id):
    async def scene():
        watch = Watch(db, tick_seconds=0.01)
        watcher = asyncio.create_task(watch.changed(job_id, 1, timeout=10))
        await asyncio.sleep(0.05)
        watch.close()
        assert await asyncio.wait_for(watcher, 1)
        assert await watch.changed(job_id, 1, timeout=10)

    asyncio.run(scene())
