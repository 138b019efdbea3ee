import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hooks import add_webhook, told
from sqlalchemy import select, update

from ledger import deliveries, lifecycle
from ledger.deliveries import Outcome
from ledger.errors import NotFound
from ledger.tables import DEFAULT_TENANT, Delivery, DeliveryTry, Webhook

PAUSES = [10.0, 100.0]
TAKEN, FAILED = Outcome(0.1, 204), Outcome(0.1, 500, "the receiver answered 500")


@pytest.fixture
def webhook(db) -> Webhook:
    return add_webhook(db)[0]


@pytest.fixture
def announce(db, queue_job, webhook):
    """This many deliveries, due at once."""

    def announce(count: int = 1) -> list[str]:
        for _ in range(count):
            job_id = queue_job()
            with db.write() as session:
                lifecycle.request_cancel(session, DEFAULT_TENANT, job_id)
        return [row.id for row in told(db)]

    return announce


def claim(db, webhook, limit=1, lease=30.0):
    return deliveries.claim(db, webhook.id, limit, lease)


def row(db, delivery_id) -> Delivery:
    with db.read() as session:
        return session.get_one(Delivery, delivery_id)


def change(db, **values):
    with db.write() as session:
        session.execute(update(Delivery).values(**values))


def finish(db, parcel, outcome, pauses=PAUSES):
    return deliveries.finish(db, parcel, outcome, pauses)


def tries(db, delivery_id) -> list[DeliveryTry]:
    with db.read() as session:
        return deliveries.tries_of(session, [session.get_one(Delivery, delivery_id)])[delivery_id]


def redeliver(db, webhook, delivery_id):
    with db.write() as session:
        return deliveries.redeliver(session, DEFAULT_TENANT, webhook.id, delivery_id)


class TestClaim:
    def test_of_many_couriers_each_delivery_is_won_once(self, db, webhook, announce):
        ids = announce(30)
        with ThreadPoolExecutor(8) as pool:
            won = [parcel for some in pool.map(lambda _: claim(db, webhook, 4), range(40)) for parcel in some]
        assert Counter(parcel.delivery.id for parcel in won) == Counter(ids)
        assert {parcel.number for parcel in won} == {1}

    def test_the_oldest_first_and_no_more_than_asked(self, db, webhook, announce):
        ids = announce(3)
        assert [parcel.delivery.id for parcel in claim(db, webhook, 2)] == ids[:2]

    def test_one_that_is_under_way_is_not_taken_again(self, db, webhook, announce):
        announce()
        assert claim(db, webhook)
        assert not claim(db, webhook)

    def test_one_whose_worker_was_killed_is_due_when_the_lease_is_over(self, db, webhook, announce):
        (id,) = announce()
        claim(db, webhook, lease=0.05)
        time.sleep(0.1)
        (again,) = claim(db, webhook)
        assert (again.delivery.id, again.number) == (id, 2)
        assert [each.seconds for each in tries(db, id)] == [None, None]

    def test_what_is_not_due_waits(self, db, webhook, announce):
        announce()
        change(db, due_at=time.time() + 60)
        assert not claim(db, webhook)
        assert not deliveries.waiting(db, [], 10)

    def test_whoever_waits_longest_comes_first_and_the_busy_not_at_all(self, db, webhook, announce):
        other = add_webhook(db)[0]
        announce(2)
        assert deliveries.waiting(db, [], 10) == [webhook.id, other.id]
        assert deliveries.waiting(db, [webhook.id], 10) == [other.id]
        assert deliveries.waiting(db, [], 1) == [webhook.id]


class TestFinish:
    def test_taken(self, db, webhook, announce):
        (id,) = announce()
        (parcel,) = claim(db, webhook)
        assert finish(db, parcel, TAKEN) == "delivered"
        assert (row(db, id).due_at, row(db, id).leased_until) == (None, None)
        (only,) = tries(db, id)
        assert (only.status, only.reason, only.seconds) == (204, None, 0.1)
        assert not claim(db, webhook)

    def test_not_taken_it_is_due_again_after_a_pause_that_is_not_always_the_same(self, db, webhook, announce):
        ids = announce(20)
        for parcel in claim(db, webhook, 20):
            assert finish(db, parcel, FAILED) == "pending"
        pauses = [row(db, id).due_at - time.time() for id in ids]
        assert all(6 < pause < 13 for pause in pauses)
        assert max(pauses) - min(pauses) > 0.5

    def test_after_the_last_pause_it_is_given_up(self, db, webhook, announce):
        (id,) = announce()
        for expected in ("pending", "pending", "given_up"):
            change(db, due_at=1.0)
            (parcel,) = claim(db, webhook)
            assert finish(db, parcel, FAILED) == expected
        assert row(db, id).due_at is None
        assert [each.number for each in tries(db, id)] == [1, 2, 3]

    def test_no_further_try_where_it_makes_no_sense(self, db, webhook, announce):
        announce()
        (parcel,) = claim(db, webhook)
        assert finish(db, parcel, Outcome(0.1, 410, "gone", final=True)) == "given_up"

    def test_a_courier_that_woke_up_late_changes_nothing_of_the_next_try(self, db, webhook, announce):
        (id,) = announce()
        (late,) = claim(db, webhook, lease=0)
        (held,) = claim(db, webhook)
        assert finish(db, late, FAILED) is None
        assert row(db, id).leased_until is not None
        assert finish(db, held, TAKEN) == "delivered"

    def test_but_what_a_receiver_has_taken_is_delivered(self, db, webhook, announce):
        (id,) = announce()
        (late,) = claim(db, webhook, lease=0)
        (held,) = claim(db, webhook)
        assert finish(db, late, TAKEN) == "delivered"
        assert finish(db, held, FAILED) is None
        assert row(db, id).state == "delivered"

    def test_a_webhook_that_was_deleted_meanwhile(self, db, webhook, announce):
        announce()
        (parcel,) = claim(db, webhook)
        with db.write() as session:
            session.delete(session.get_one(Webhook, webhook.id))
        assert finish(db, parcel, FAILED) is None
        with db.read() as session:
            assert session.scalars(select(DeliveryTry)).all() == []


class TestGivingBack:
    def test_the_next_has_it_at_once_and_it_costs_no_try(self, db, webhook, announce):
        (id,) = announce()
        deliveries.give_back(db, claim(db, webhook), "its worker was closing")
        (parcel,) = claim(db, webhook)
        assert finish(db, parcel, FAILED, pauses=[10.0]) == "pending"
        assert [each.reason for each in tries(db, id)] == ["its worker was closing", FAILED.reason]


class TestRedelivery:
    @pytest.mark.parametrize("outcome", [TAKEN, Outcome(0.1, 410, "gone", final=True)])
    def test_under_the_same_id_with_all_its_pauses(self, db, webhook, announce, outcome):
        (id,) = announce()
        finish(db, claim(db, webhook)[0], outcome)
        redeliver(db, webhook, id)
        (parcel,) = claim(db, webhook)
        assert (parcel.delivery.id, parcel.number) == (id, 2)
        assert finish(db, parcel, FAILED) == "pending"
        assert 6 < row(db, id).due_at - time.time() < 13

    def test_one_that_is_under_way_is_not_sent_by_a_second(self, db, webhook, announce):
        (id,) = announce()
        (parcel,) = claim(db, webhook)
        redeliver(db, webhook, id)
        assert not claim(db, webhook)
        assert finish(db, parcel, Outcome(0.1, 410, "gone", final=True)) == "pending"
        assert claim(db, webhook)

    def test_of_another_tenant_or_webhook(self, db, webhook, announce):
        (id,) = announce()
        for tenant, webhook_id in (("mallory", webhook.id), (DEFAULT_TENANT, "webhook_" + "0" * 32)):
            with pytest.raises(NotFound), db.write() as session:
                deliveries.redeliver(session, tenant, webhook_id, id)


class TestForgetting:
    def test_what_came_to_its_end_long_ago(self, db, webhook, announce):
        announce(3)
        finish(db, claim(db, webhook)[0], TAKEN)
        assert deliveries.forget(db, 1) == 0
        change(db, created_at=time.time() - 2 * 86400)
        assert deliveries.forget(db, 1) == 1
        assert [each.state for each in told(db)] == ["pending"] * 2


def test_the_log_of_tries_shows_the_last_ones(db, webhook, announce):
    (id,) = announce()
    for _ in range(deliveries.TRIES_SHOWN + 3):
        change(db, due_at=1.0, leased_until=None)
        claim(db, webhook)
    numbers = [each.number for each in tries(db, id)]
    assert (numbers[0], numbers[-1], len(numbers)) == (4, deliveries.TRIES_SHOWN + 3, deliveries.TRIES_SHOWN)


def test_a_webhook_deleted_while_a_job_ends_spoils_neither(db, queue_job, webhook):
    """The end waits for nobody, and the deletion waits for the end."""
    held = lifecycle.claim(db, "cpu", "worker_a", 60, queue_job())

    def delete():
        with db.write() as session:
            session.delete(session.get_one(Webhook, webhook.id))

    with ThreadPoolExecutor(1) as pool:
        with db.write() as session:
            assert lifecycle.settle(session, held, "succeeded")
            deleting = pool.submit(delete)
            time.sleep(0.2)
            assert not deleting.done()
        deleting.result(10)
    assert told(db) == []
