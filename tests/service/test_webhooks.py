import json
import socket
import time

import pytest
from making import finished, submit, wait_for
from sqlalchemy import select

from ledger.db import Database
from ledger.settings import Settings
from ledger.tables import Idempotency, Webhook
from service.errors import Invalid
from service.webhooks.address import check_address

NOWHERE = "https://hooks.invalid/flashcards?token=opensesame"  # a name that never leads anywhere


def create(api, headers=None, **fields):
    return api.post("/v1/webhooks", json={"url": NOWHERE, "events": ["job.succeeded"], **fields}, headers=headers or {})


@pytest.fixture
def webhook(api):
    made = create(api, labels={"for": str(time.time_ns())}).json()
    yield made
    api.delete(f"/v1/webhooks/{made['id']}")


@pytest.fixture
def delivery(api, webhook):
    """One that was tried once, in vain."""
    job = finished(api, kind="noop", labels=webhook["labels"])
    tried = wait_for_try(api, webhook, 1)
    assert tried["job"] == job["id"]
    return tried


def deliveries(api, webhook, **query) -> list[dict]:
    return api.get(f"/v1/webhooks/{webhook['id']}/deliveries", params=query).json()["items"]


def wait_for_try(api, webhook, number: int) -> dict:
    for _ in range(600):
        found = deliveries(api, webhook)
        if found and len(found[0]["tries"]) >= number and found[0]["tries"][number - 1]["seconds"] is not None:
            return found[0]
        time.sleep(0.05)
    raise TimeoutError(found)


class TestALifeOfAWebhook:
    def test_its_secret_is_shown_once(self, api):
        answer = create(api, name="ci", labels={"team": "blue"})
        made = answer.json()
        assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/webhooks/{made['id']}")
        assert answer.headers["cache-control"] == "no-store"
        assert made["secret"].startswith(made["hint"])
        read = api.get(f"/v1/webhooks/{made['id']}").json()
        assert read == {name: value for name, value in made.items() if name != "secret"}
        assert made["secret"] not in api.get("/v1/webhooks").text
        assert api.delete(f"/v1/webhooks/{made['id']}").status_code == 204
        assert api.get(f"/v1/webhooks/{made['id']}").status_code == 404

    def test_a_replay_does_not_show_it_again(self, api):
        headers = {"Idempotency-Key": f"hook-{time.time_ns()}"}
        first, again = create(api, headers), create(api, headers)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json() == {**first.json(), "secret": None}
        assert create(api, headers, name="other").json()["type"] == "/problems/idempotency-key-reused"

    def test_neither_the_record_nor_the_log_have_it(self, api, service):
        headers = {"Idempotency-Key": f"hook-{time.time_ns()}"}
        made = create(api, headers).json()
        rotated = api.post(
            f"/v1/webhooks/{made['id']}/rotate", headers={**headers, "Idempotency-Key": "r" + made["id"]}
        )
        db = Database(f"sqlite:///{service.home / 'flashcards.db'}")
        with db.read() as session:
            row = session.get_one(Webhook, made["id"])
            kept = [str(getattr(row, column.key)) for column in Webhook.__table__.columns]
            text = json.dumps([*kept, *session.scalars(select(Idempotency.body))])
        db.close()
        for secret in (made["secret"], rotated.json()["secret"]):
            assert secret[len(made["hint"]) :] not in text + service.log.read_text()

    def test_rotated_it_has_another_and_says_how_long_the_first_is_good(self, api, webhook):
        headers = {"Idempotency-Key": f"rotate-{time.time_ns()}"}
        path = f"/v1/webhooks/{webhook['id']}/rotate"
        answer = api.post(path, json={"grace_hours": 2}, headers=headers)
        made = answer.json()
        assert answer.status_code == 200
        assert made["secret"] not in (None, webhook["secret"])
        assert made["previous_until"] > made["created_at"]
        assert api.post(path, json={"grace_hours": 2}, headers=headers).json() == {**made, "secret": None}
        assert api.get(f"/v1/webhooks/{webhook['id']}").json()["hint"] == made["hint"]
        assert api.post(path, json={"grace_hours": 1000}).status_code == 422

    def test_pages(self, api):
        made = [create(api, name=f"page {n}").json()["id"] for n in range(3)]
        first = api.get("/v1/webhooks", params={"limit": 2}).json()
        assert [item["id"] for item in first["items"]] == made[:0:-1]
        second = api.get("/v1/webhooks", params={"limit": 1, "cursor": first["next_cursor"]}).json()
        assert second["items"][0]["id"] == made[0]
        assert api.get("/v1/webhooks", params={"cursor": "x"}).status_code == 422


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"events": []}, "events"),
            ({"events": ["job.started"]}, "events"),
            ({"url": "hooks.example"}, "url"),
            ({"url": "ftp://hooks.example/"}, "url"),
            ({"url": "https://hooks example/"}, "url"),
            ({"url": "https://hooks.example/" + "x" * 2000}, "url"),
            ({"url": "http://hooks.example/"}, "url"),
            ({"url": "https://me:secret@hooks.example/"}, "url"),
            ({"url": "https://127.0.0.1/"}, "url"),
            ({"url": "https://127.1/"}, "url"),
            ({"url": "https://localhost:8642/v1/jobs"}, "url"),
            ({"url": "https://169.254.169.254/latest/meta-data"}, "url"),
            ({"url": "https://[::1]/"}, "url"),
            ({"url": "https://[::ffff:10.0.0.1]/"}, "url"),
            ({"url": "https://[fe80::1%25eth0]/"}, "url"),
            ({"url": "https://10.0.0.1:5432/"}, "url"),
            ({"labels": {"a b": "c"}}, "labels"),
            ({"secret": "whsec_mine"}, "secret"),
        ],
    )
    def test_it_is_said_which_field(self, api, fields, field):
        answer = create(api, **fields)
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid")
        assert any(field in entry["field"] for entry in answer.json()["errors"])

    def test_a_name_that_leads_inside(self):
        with pytest.raises(Invalid, match=r"is at 10\.0\.0\.1"):
            check_address("https://inside.example/", Settings(), lambda host, port: ["1.1.1.1", "10.0.0.1"])

    def test_a_lookup_that_takes_too_long_keeps_nobody_waiting(self, monkeypatch):
        monkeypatch.setattr("service.webhooks.address.LOOKUP_SECONDS", 0.2)
        started = time.monotonic()
        check_address("https://slow.example/", Settings(), lambda host, port: time.sleep(2) or [])
        assert time.monotonic() - started < 1.5

    def test_a_name_that_leads_nowhere_passes(self):
        def unknown(host, port):
            raise socket.gaierror(socket.EAI_NONAME, "unknown")

        check_address("https://later.example/", Settings(), unknown)

    def test_a_network_of_ones_own_is_allowed_by_a_setting(self):
        allowed = Settings(webhook_private_networks=["10.1.0.0/16"])
        check_address("http://inside.example/", allowed, lambda host, port: ["10.1.0.7"])
        for url, answer in (("http://inside.example/", "10.2.0.7"), ("http://outside.example/", "1.1.1.1")):
            with pytest.raises(Invalid):
                check_address(url, allowed, lambda host, port, answer=answer: [answer])


class TestDeliveries:
    def test_the_log_says_how_each_try_went(self, api, delivery):
        assert (delivery["state"], delivery["type"]) == ("pending", "job.succeeded")
        assert delivery["next_try_at"] is not None
        first = delivery["tries"][0]
        assert (first["number"], first["status"]) == (1, None)
        assert "cannot be reached" in first["reason"]
        assert first["seconds"] >= 0

    def test_one_of_them(self, api, webhook, delivery):
        path = f"/v1/webhooks/{webhook['id']}/deliveries"
        assert api.get(f"{path}/{delivery['id']}").json()["id"] == delivery["id"]
        assert api.get(f"{path}/delivery_{'0' * 32}").status_code == 404
        assert api.get(f"/v1/webhooks/webhook_{'0' * 32}/deliveries").status_code == 404

    def test_sent_again_by_hand(self, api, webhook, delivery):
        headers = {"Idempotency-Key": f"again-{time.time_ns()}"}
        path = f"/v1/webhooks/{webhook['id']}/deliveries/{delivery['id']}/redeliver"
        answer = api.post(path, headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (202, delivery["id"])
        assert api.post(path, headers=headers).headers["idempotency-replayed"] == "true"
        again = wait_for_try(api, webhook, 2)
        assert again["id"] == delivery["id"]

    def test_by_state_and_page_by_page(self, api, webhook):
        jobs = [finished(api, kind="noop", labels=webhook["labels"])["id"] for _ in range(3)]
        assert [row["job"] for row in deliveries(api, webhook, state="pending")] == jobs[::-1]
        assert deliveries(api, webhook, state="delivered") == []
        path = f"/v1/webhooks/{webhook['id']}/deliveries"
        first = api.get(path, params={"limit": 2}).json()
        second = api.get(path, params={"limit": 2, "cursor": first["next_cursor"]}).json()
        assert [row["job"] for row in first["items"] + second["items"]] == jobs[::-1]

    def test_of_a_job_that_was_cancelled(self, api, webhook, dataset):
        made = create(api, events=["job.cancelled"], labels=webhook["labels"]).json()
        spec = {"kind": "train", "dataset": dataset["id"], "architecture": "blk_1_fil_8", "epochs": 100_000}
        job = submit(api, labels=webhook["labels"], **spec)
        api.post(f"/v1/jobs/{job['id']}/cancel")
        assert wait_for(api, job["id"])["state"] == "cancelled"
        assert [(row["type"], row["job"]) for row in deliveries(api, made)] == [("job.cancelled", job["id"])]
        api.delete(f"/v1/webhooks/{made['id']}")

    def test_they_go_with_their_webhook(self, api, delivery):
        api.delete(f"/v1/webhooks/{delivery['webhook']}")
        assert api.get(f"/v1/webhooks/{delivery['webhook']}/deliveries").status_code == 404

    def test_they_are_counted(self, api, delivery):
        assert 'flashcards_webhook_deliveries{state="pending"}' in api.get("/metrics").text
