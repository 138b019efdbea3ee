"""The same service with other URLs: PostgreSQL for the record, Redis for the bell, several processes of each kind."""

import time

import httpx
import pytest
from making import finished, push_dataset, submit, wait_for

servers = pytest.mark.parametrize("ground", ["servers"], indirect=True)


def test_it_walks(ground):
    client = ground.client
    assert client.get("/readyz").json()["ready"]
    job = finished(client, kind="capture", model=ground.model, count=10, r=2, labels={"walks": "yes"})
    assert client.get(f"/v1/flashcards/{job['result']['flashcards']}/cards").status_code == 200
    found = client.get("/v1/jobs", params={"label": "walks=yes"}).json()["items"]
    assert [item["id"] for item in found] == [job["id"]]
    assert 'flashcards_jobs{kind="capture",state="succeeded"}' in client.get("/metrics").text


@servers
def test_nothing_of_the_embedded_default_is_used(ground):
    finished(ground.client, kind="noop")
    assert not (ground.stack.home / "flashcards.db").exists()
    assert not (ground.stack.home / "broker").exists()


@servers
def test_what_one_api_has_taken_in_the_other_one_knows(ground, digits_npz):
    one, other = (httpx.Client(base_url=url, timeout=60) for url in ground.stack.api_urls)
    with one, other:
        dataset = push_dataset(one, digits_npz, name="passed on")
        assert other.get(f"/v1/datasets/{dataset['id']}").json() == dataset
        job = submit(one, kind="noop")
        assert wait_for(other, job["id"])["state"] == "succeeded"


@servers
def test_without_redis_jobs_are_taken_in_and_run_when_it_is_back(ground):
    ground.stack.redis.stop()
    try:
        job = submit(ground.client, kind="noop")
        readiness = ground.client.get("/readyz")
        assert (readiness.status_code, readiness.json()["checks"]["broker"]) == (503, False)
    finally:
        ground.stack.redis.start()
    assert wait_for(ground.client, job["id"])["state"] == "succeeded"


@servers
def test_without_postgresql_a_client_is_asked_to_come_back(ground):
    client = ground.client
    ground.stack.postgres.stop()
    try:
        for answer in (client.get("/v1/jobs"), client.post("/v1/jobs", json={"kind": "noop"})):
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems/database-away")
            assert answer.headers["retry-after"] == "1"
    finally:
        ground.stack.postgres.start()
    assert client.get("/v1/jobs").status_code == 200


@servers
def test_a_request_whose_database_died_is_done_once_when_it_is_sent_again(ground):
    client, request = ground.client, {"json": {"kind": "noop"}, "headers": {"Idempotency-Key": f"once-{time.time()}"}}
    ground.stack.postgres.kill()
    assert client.post("/v1/jobs", **request).status_code == 503
    ground.stack.postgres.start()
    first = client.post("/v1/jobs", **request)
    assert (first.status_code, first.headers.get("idempotency-replayed")) == (202, None)
    again = client.post("/v1/jobs", **request)
    assert (again.json()["id"], again.headers["idempotency-replayed"]) == (first.json()["id"], "true")
