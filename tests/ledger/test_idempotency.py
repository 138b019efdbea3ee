import pytest
from sqlalchemy import update

from ledger import idempotency
from ledger.idempotency import Answer, InFlight
from ledger.tables import DEFAULT_TENANT, Idempotency

GIVEN = Answer("mark", 202, "/v1/jobs/x", "{}")


def reserve(db, holder="one"):
    return idempotency.reserve(db, DEFAULT_TENANT, "key", holder)


def test_the_first_gets_the_key_and_a_twin_in_flight_is_told(db):
    assert reserve(db) is None
    with pytest.raises(InFlight):
        reserve(db, "two")


def test_the_answer_is_given_again(db):
    reserve(db)
    with db.write() as session:
        idempotency.answer(session, DEFAULT_TENANT, "key", "one", GIVEN)
    assert reserve(db, "two") == GIVEN


def test_a_failed_request_frees_its_key(db):
    reserve(db)
    idempotency.give_up(db, DEFAULT_TENANT, "key", "one")
    assert reserve(db, "two") is None


def test_a_dead_holder_loses_its_lock_but_a_live_one_holds_on(db):
    reserve(db)
    with db.write() as session:
        session.execute(update(Idempotency).values(locked_until=1.0))
    idempotency.hold_on(db, DEFAULT_TENANT, "key", "one")
    with pytest.raises(InFlight):
        reserve(db, "two")
    with db.write() as session:
        session.execute(update(Idempotency).values(locked_until=1.0))
    assert reserve(db, "two") is None
    idempotency.give_up(db, DEFAULT_TENANT, "key", "one")  # no longer its own
    with pytest.raises(InFlight):
        reserve(db, "three")


def test_answers_are_forgotten_after_a_day_and_not_before(db):
    reserve(db)
    with db.write() as session:
        idempotency.answer(session, DEFAULT_TENANT, "key", "one", GIVEN)
    idempotency.forget(db, after_hours=24)
    assert reserve(db, "two") == GIVEN
    with db.write() as session:
        session.execute(update(Idempotency).values(created_at=Idempotency.created_at - 25 * 3600))
    idempotency.forget(db, after_hours=24)
    assert reserve(db, "two") is None


def test_a_holder_that_was_slow_does_not_answer_for_the_one_who_took_over(db):
    reserve(db)
    with db.write() as session:
        session.execute(update(Idempotency).values(locked_until=1.0))
    assert reserve(db, "two") is None
    with pytest.raises(InFlight), db.write() as session:
        idempotency.answer(session, DEFAULT_TENANT, "key", "one", GIVEN)
    with db.write() as session:
        idempotency.answer(session, DEFAULT_TENANT, "key", "two", GIVEN)
    assert reserve(db, "three") == GIVEN


def test_a_clock_that_was_put_back_locks_no_key_for_an_hour(db):
    reserve(db)
    with db.write() as session:
        session.execute(update(Idempotency).values(locked_until=Idempotency.locked_until + 3600))
    assert reserve(db, "two") is None
