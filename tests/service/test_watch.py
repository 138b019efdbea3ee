import asyncio

import pytest
from sqlalchemy import delete, update

from flashcards.contract.specs import job_spec
from ledger import events, jobs, lifecycle
from ledger.admission import Admitted
from ledger.db import Database
from ledger.migrate import migrate
from ledger.tables import DEFAULT_TENANT, Job
from service.watch import LOOK, READ_AHEAD, Watch


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


class TestNews:
    """Events come with the waking, read once for everybody."""

    def say(self, db, job_id, *texts):
        with db.write() as session:
            events.append(session, job_id, [("note", {"text": text}) for text in texts])

    def heard(self, db, say, *positions, wait=10):
        """What waiters at these positions are told once `say` was done."""

        async def scene():
            watch = Watch(db, tick_seconds=0.01)
            waiters = [asyncio.create_task(watch.news(*position, timeout=wait)) for position in positions]
            await asyncio.sleep(0.05)
            await asyncio.to_thread(say)
            return await asyncio.gather(*waiters)

        return asyncio.run(scene())

    def test_each_hears_what_comes_after_its_own_place(self, db, job_id):
        self.say(db, job_id, "one")
        at_one, at_two = self.heard(db, lambda: self.say(db, job_id, "two", "three"), (job_id, 2), (job_id, 3))
        assert [seq for seq, _ in at_one.events] == [3, 4]
        assert [seq for seq, _ in at_two.events] == [4]
        assert at_one.events[1] is at_two.events[0], "put into bytes once"
        assert b"id: 4" in at_two.events[0][1]
        assert not at_one.ended

    def test_the_last_event_says_that_it_is_the_last(self, db, job_id):
        def cancel():
            with db.write() as session:
                lifecycle.request_cancel(session, DEFAULT_TENANT, job_id)

        (news,) = self.heard(db, cancel, (job_id, 1))
        assert news.ended
        assert b'"state":"cancelled"' in news.events[-1][1]

    def test_who_is_far_behind_looks_for_itself(self, db, job_id):
        def say_much():
            self.say(db, job_id, *map(str, range(READ_AHEAD + 1)))

        assert self.heard(db, say_much, (job_id, 1)) == [LOOK]

    def test_a_job_that_is_gone_is_looked_for(self, db, job_id):
        def remove():
            with db.write() as session:
                session.execute(delete(Job).where(Job.id == job_id))

        assert self.heard(db, remove, (job_id, 1)) == [LOOK]

    def test_a_quiet_job_has_no_news(self, db, job_id):
        assert self.heard(db, lambda: None, (job_id, 1), wait=0.2) == [None]
