import time

import pytest
from sqlalchemy import update

from flashcards.contract.specs import job_spec
from ledger import events, jobs, lifecycle
from ledger.admission import Admitted
from ledger.db import Database
from ledger.errors import StoreAway
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Job
from worker import holding
from worker.holding import ClaimLost, Holding, NoStore
from worker.station import Station

LEASE = 0.4


@pytest.fixture
def station(tmp_path, monkeypatch):
    monkeypatch.setattr(holding, "PAUSE_SECONDS", 0.05)
    settings = Settings(home=tmp_path, lease_seconds=LEASE)
    migrate(Database(settings.database))
    opened = Station(settings)
    yield opened
    opened.close()


@pytest.fixture
def claim(station):
    with station.db.write() as session:
        jobs.create(session, DEFAULT_TENANT, job_spec.validate_python({"kind": "noop"}), Admitted("cpu", []))
    return station.claim(None)


def hold(station, claim, work, patience: float = 10.0):
    with Holding(station, claim, time.monotonic()) as held:
        return held.patiently(work, patience)


def change(station, **values) -> None:
    with station.db.write() as session:
        session.execute(update(Job).values(**values))


class Away:
    """A store that answers at the n-th try."""

    def __init__(self, answers_at: float, passes: bool = True) -> None:
        self.tries, self.answers_at, self.passes = 0, answers_at, passes

    def __call__(self) -> str:
        self.tries += 1
        if self.tries < self.answers_at:
            raise StoreAway(self.passes)
        return "done"


def test_the_lease_lives_as_long_as_the_work(station, claim):
    hold(station, claim, lambda: time.sleep(3 * LEASE))
    assert lifecycle.expire(station.db) == 0
    time.sleep(1.5 * LEASE)
    assert lifecycle.expire(station.db) == 1


def test_a_store_that_comes_back_is_waited_for_and_the_job_says_so(station, claim):
    assert hold(station, claim, Away(answers_at=8)) == "done"
    with station.db.read() as session:
        notes = [event.data["text"] for event in events.of_kind(session, claim.job_id, "note")]
    assert notes == [holding.WAITING]


def test_patience_has_an_end(station, claim):
    store = Away(answers_at=float("inf"))
    with pytest.raises(NoStore) as raised:
        hold(station, claim, store, patience=0.2)
    assert raised.value.reason is None
    assert store.tries > 1


def test_a_store_that_refuses_is_not_waited_for(station, claim):
    store = Away(answers_at=2, passes=False)
    with pytest.raises(NoStore):
        hold(station, claim, store)
    assert store.tries == 1


@pytest.mark.parametrize(
    ("change_", "reason"), [({"cancel_requested_at": 1.0}, "cancel"), ({"deadline": 1.0}, "deadline")]
)
def test_who_is_told_to_end_stops_waiting(station, claim, change_, reason):
    change(station, **change_)
    with pytest.raises(NoStore) as raised:
        hold(station, claim, Away(answers_at=float("inf")))
    assert raised.value.reason == reason


def test_a_worker_that_closes_stops_waiting(station, claim):
    station.draining.set()
    with pytest.raises(NoStore) as raised:
        hold(station, claim, Away(answers_at=float("inf")))
    assert raised.value.reason == "drain"


def test_a_claim_that_was_lost_meanwhile_is_lost(station, claim):
    change(station, attempt=claim.attempt + 1)
    with pytest.raises(ClaimLost):
        hold(station, claim, lambda: time.sleep(LEASE))
