import pytest
from sqlalchemy import update

from ledger import lifecycle, workers
from ledger.doorbell import Doorbell
from ledger.settings import Settings
from ledger.tables import Job, Worker


@pytest.fixture
def bell(tmp_path):
    return Doorbell(Settings(home=tmp_path))


def forget_rings(db):
    with db.write() as session:
        session.execute(update(Job).values(rung_at=None))


def test_a_lost_ring_is_rung_again_for_an_idle_worker(db, queue_job, bell):
    workers.register(db, "cpu")
    queue_job()
    assert bell.ring_again(db, after_seconds=30) == 0  # it was rung just now
    forget_rings(db)
    assert bell.ring_again(db, after_seconds=30) == 1
    assert bell.ring_again(db, after_seconds=30) == 0


def test_nobody_is_rung_for_where_nobody_is_idle(db, queue_job, bell):
    worker_id = workers.register(db, "cpu")
    queue_job()
    lifecycle.claim(db, "cpu", worker_id, 60)
    queue_job()
    forget_rings(db)
    assert bell.ring_again(db, after_seconds=0) == 0


def test_a_long_queue_is_not_rung_for_as_a_whole(db, queue_job, bell):
    workers.register(db, "cpu")
    for _ in range(5):
        queue_job()
    forget_rings(db)
    assert bell.ring_again(db, after_seconds=30) == 1


def test_a_clock_that_was_put_back_does_not_silence_the_bell(db, queue_job, bell):
    workers.register(db, "cpu")
    queue_job()
    with db.write() as session:
        session.execute(update(Job).values(rung_at=Job.rung_at + 3600))
    assert bell.ring_again(db, after_seconds=30) == 1


def test_a_worker_from_the_future_is_not_taken_for_alive(db):
    workers.register(db, "cpu")
    assert workers.alive(db) == {"cpu": 1}
    with db.write() as session:
        session.execute(update(Worker).values(seen_at=Worker.seen_at + 3600))
    assert workers.alive(db) == {}
