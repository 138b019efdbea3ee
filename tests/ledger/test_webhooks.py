import pytest
from sqlalchemy import update
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from flashcards.contract.webhooks import NewWebhook
from ledger import webhooks
from ledger.clock import as_datetime
from ledger.errors import Conflict, NotFound
from ledger.tables import DEFAULT_TENANT, Webhook

ASKED = NewWebhook(url="https://hooks.example/", events=["job.failed", "job.succeeded", "job.failed"])
BODY = '{"type":"job.failed"}'


def create(db, setting=""):
    with db.write() as session:
        return webhooks.create(session, DEFAULT_TENANT, ASKED, setting)


def rotate(db, row, hours=24.0, setting=""):
    with db.write() as session:
        return webhooks.rotate(session, DEFAULT_TENANT, row.id, hours, setting)


def headers(row, at, setting=""):
    signature = webhooks.sign(row, setting, "delivery_1", as_datetime(at), BODY)
    return {"webhook-id": "delivery_1", "webhook-timestamp": str(int(at)), "webhook-signature": signature}


def verifies(secret, sent) -> bool:
    try:
        Verifier(secret).verify(BODY, sent)
    except WebhookVerificationError:
        return False
    return True


@pytest.fixture
def clock(db):
    import time

    return time.time()


def test_it_signs_as_the_standard_says(db, clock):
    row, secret = create(db)
    sent = headers(row, clock)
    assert Verifier(secret).verify(BODY, sent) == {"type": "job.failed"}
    assert " " not in sent["webhook-signature"]
    assert not verifies(create(db)[1], sent)
    assert not verifies(secret, {**sent, "webhook-id": "delivery_2"})


def test_the_secret_is_nowhere_in_its_row(db):
    row, secret = create(db, "a setting")
    kept = " ".join(str(getattr(row, column.key)) for column in Webhook.__table__.columns)
    assert secret.startswith(row.hint)
    assert secret not in kept
    assert secret[len(row.hint) :] not in kept


def test_events_are_kept_once(db):
    assert create(db)[0].events == ["job.failed", "job.succeeded"]


class TestRotation:
    def test_for_a_while_both_secrets_verify(self, db, clock):
        row, old = create(db)
        row, new = rotate(db, row)
        sent = headers(row, clock)
        assert verifies(old, sent)
        assert verifies(new, sent)
        assert len(sent["webhook-signature"].split(" ")) == 2

    def test_then_only_the_new_one(self, db, clock):
        row, old = create(db)
        row, new = rotate(db, row)
        with db.write() as session:
            session.execute(update(Webhook).values(previous_until=clock - 1))
        with db.read() as session:
            row = session.get_one(Webhook, row.id)
        sent = headers(row, clock)
        assert not verifies(old, sent)
        assert verifies(new, sent)

    def test_without_grace_at_once(self, db, clock):
        row, old = create(db)
        row, _ = rotate(db, row, hours=0)
        assert not verifies(old, headers(row, clock + 1))

    def test_twice_and_the_first_is_gone(self, db, clock):
        row, first = create(db)
        row, second = rotate(db, row)
        row, third = rotate(db, row)
        sent = headers(row, clock)
        assert [verifies(secret, sent) for secret in (first, second, third)] == [False, True, True]

    def test_of_nobodys_webhook(self, db):
        row, _ = create(db)
        with pytest.raises(NotFound), db.write() as session:
            webhooks.rotate(session, "mallory", row.id, 1, "")


class TestTheSetting:
    def test_another_one_does_not_sign_in_silence(self, db, clock):
        row, _ = create(db, "one")
        with pytest.raises(webhooks.OtherSecret, match="rotate"):
            headers(row, clock, "another")

    def test_rotating_puts_it_right(self, db, clock):
        row, _ = create(db, "one")
        row, new = rotate(db, row, setting="another")
        assert verifies(new, headers(row, clock, "another"))


def test_there_is_an_end_to_them(db):
    for _ in range(webhooks.MOST):
        create(db)
    with pytest.raises(Conflict, match="delete one"):
        create(db)
