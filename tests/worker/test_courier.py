"""Couriers against real receivers. What they are to carry comes of jobs that end."""

import time
from collections import Counter
from contextlib import contextmanager

import pytest
from hooks import add_webhook, told
from receivers import receiving, respond
from sqlalchemy import select, update

from flashcards.contract.specs import job_spec
from ledger import jobs, lifecycle
from ledger.admission import Admitted
from ledger.db import Database
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Delivery, DeliveryTry
from worker import courier
from worker.station import Station


@pytest.fixture
def settings(tmp_path):
    made = Settings(
        home=tmp_path / "home",
        webhook_private_networks=["127.0.0.1/32"],
        webhook_seconds=1,
        webhook_pauses=[0.1] * 20,
        webhook_poll_seconds=0.05,
    )
    made.home.mkdir()
    migrate(Database(made.database))
    return made


@contextmanager
def at_work(settings, count: int = 1):
    """This many workers' couriers."""
    stations = [Station(settings) for _ in range(count)]
    threads = [courier.start(station.db, settings, station.draining) for station in stations]
    try:
        yield stations[0]
    finally:
        for station, thread in zip(stations, threads, strict=True):
            station.draining.set()
            thread.join(10)
            assert not thread.is_alive()
            station.close()


@pytest.fixture
def db(settings):
    opened = Database(settings.database)
    yield opened
    opened.close()


def end_jobs(db, count: int) -> None:
    spec = job_spec.validate_python({"kind": "noop"})
    for _ in range(count):
        with db.write() as session:
            job = jobs.create(session, DEFAULT_TENANT, spec, Admitted("cpu", []))
        with db.write() as session:
            lifecycle.request_cancel(session, DEFAULT_TENANT, job.id)


def wait_until(true, seconds: float = 30) -> float:
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < seconds, "it took too long"
        time.sleep(0.02)
    return time.monotonic() - started


def states(db, webhook_id=None) -> Counter:
    return Counter(row.state for row in told(db, webhook_id))


def test_everything_arrives_and_each_is_sent_once(settings, db):
    with receiving() as receiver:
        add_webhook(db, receiver.url())
        end_jobs(db, 60)
        with at_work(settings.model_copy(update={"webhook_seconds": 10}), 3):
            wait_until(lambda: states(db) == {"delivered": 60})
        assert Counter(receiver.ids) == Counter(row.id for row in told(db))


def test_a_receiver_that_fails_is_asked_again_under_the_same_id(settings, db):
    with receiving() as receiver:
        seen = Counter()

        def fail_twice(handler):
            seen[handler.headers["webhook-id"]] += 1
            respond(handler, 204 if seen[handler.headers["webhook-id"]] == 3 else 500)

        receiver.answer = fail_twice
        add_webhook(db, receiver.url())
        end_jobs(db, 5)
        with at_work(settings):
            wait_until(lambda: states(db) == {"delivered": 5})
        assert seen == Counter({row.id: 3 for row in told(db)})
        with db.read() as session:
            tried = session.execute(select(DeliveryTry.number, DeliveryTry.status)).all()
        assert Counter(map(tuple, tried)) == {(1, 500): 5, (2, 500): 5, (3, 204): 5}


def test_one_that_hangs_holds_nobody_up(settings, db):
    with receiving() as silent, receiving() as quick:
        silent.answer = lambda handler: time.sleep(3)
        slow, _ = add_webhook(db, silent.url())
        good, _ = add_webhook(db, quick.url())
        end_jobs(db, 50)
        with at_work(settings):
            took = wait_until(lambda: states(db, good.id) == {"delivered": 50})
            assert took < 10  # one after the other they would take 50 s
            assert states(db, slow.id)["delivered"] == 0


def test_one_that_did_not_answer_gets_one_try_at_a_time(settings, db):
    with receiving() as silent:
        silent.answer = lambda handler: time.sleep(3)
        add_webhook(db, silent.url())
        end_jobs(db, 30)
        with at_work(settings.model_copy(update={"webhook_seconds": 0.3})):
            wait_until(lambda: len(silent.requests) >= courier.PLACES_EACH)
            time.sleep(1.2)
            assert len(silent.requests) <= courier.PLACES_EACH + 5


def test_given_up_it_is_said_and_tried_no_more(settings, db, capfd):
    with receiving() as receiver:
        receiver.answer = lambda handler: respond(handler, 500)
        add_webhook(db, receiver.url())
        end_jobs(db, 1)
        with at_work(settings.model_copy(update={"webhook_pauses": [0.05, 0.05]})):
            wait_until(lambda: states(db) == {"given_up": 1})
            time.sleep(0.3)
        assert len(receiver.requests) == 3
    said = capfd.readouterr()
    assert "delivery.given_up" in said.out + said.err


def test_a_private_address_is_refused_and_recorded(settings, db):
    """As it would be of a name that was public when the webhook was made."""
    with receiving("127.0.0.2") as inside:
        add_webhook(db, inside.url("127.0.0.2"))
        end_jobs(db, 1)
        with at_work(settings.model_copy(update={"webhook_pauses": []})):
            wait_until(lambda: states(db) == {"given_up": 1})
        assert inside.requests == []
    with db.read() as session:
        assert "no address of the internet" in session.scalars(select(DeliveryTry.reason)).one()


def test_a_worker_that_closes_gives_back_what_it_carries(settings, db):
    with receiving() as receiver:
        receiver.answer = lambda handler: time.sleep(30)
        add_webhook(db, receiver.url())
        end_jobs(db, 1)
        patient = settings.model_copy(update={"webhook_seconds": 20})
        with at_work(patient):
            wait_until(lambda: receiver.requests)
        (row,) = told(db)
        assert (row.state, row.leased_until) == ("pending", None)
        receiver.answer = lambda handler: respond(handler, 204)
        with at_work(patient):
            wait_until(lambda: states(db) == {"delivered": 1})
        assert receiver.ids == [row.id] * 2


def test_old_ones_are_forgotten(settings, db):
    with receiving() as receiver:
        add_webhook(db, receiver.url())
        end_jobs(db, 2)
        with db.write() as session:
            session.execute(update(Delivery).values(state="delivered", due_at=None, created_at=1.0))
        with at_work(settings):
            wait_until(lambda: told(db) == [])


def test_a_database_that_is_away_for_a_moment_stops_no_courier(settings, db, monkeypatch):
    real, calls = courier.deliveries.waiting, []

    def away(*asked):
        calls.append(asked)
        if len(calls) < 3:
            raise OSError("the database is away")
        return real(*asked)

    monkeypatch.setattr(courier.deliveries, "waiting", away)
    with receiving() as receiver:
        add_webhook(db, receiver.url())
        end_jobs(db, 1)
        with at_work(settings):
            wait_until(lambda: states(db) == {"delivered": 1})
