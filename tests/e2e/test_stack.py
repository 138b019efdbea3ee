"""The same service with other URLs: PostgreSQL for the record, Redis for the bell."""

import httpx
import pytest
from making import finished, push_dataset, push_model, submit, wait_for
from servers import new_database, redis_server
from service_process import running_service

TRAINING = {"kind": "train", "architecture": "blk_2_fil_8", "epochs": 40, "patience": 40, "batch_size": 32}


@pytest.fixture(scope="module")
def stack(tmp_path_factory, postgres_url):
    folder = tmp_path_factory.mktemp("stack")
    with redis_server(folder) as broker_url:
        settings = {"database_url": new_database(postgres_url, "stack"), "broker_url": broker_url}
        tempo = {"threads": 1, "resume_seconds": 0.3, "lease_seconds": 10, "reap_seconds": 1}
        with running_service(folder / "home", **settings, **tempo) as service:
            yield service


@pytest.fixture(scope="module")
def client(stack):
    with httpx.Client(base_url=stack.url, timeout=60, transport=httpx.HTTPTransport(retries=20)) as client:
        yield client


def digest_of_weights(job) -> str:
    (found,) = [artifact["digest"] for artifact in job["artifacts"] if artifact["name"] == "model.safetensors"]
    return found


def test_it_walks(stack, client):
    assert client.get("/readyz").json()["ready"]
    assert not (stack.home / "flashcards.db").exists()
    assert not (stack.home / "broker").exists()
    job = finished(client, kind="capture", model=push_model(client)["id"], count=10, r=2, labels={"on": "postgres"})
    assert client.get(f"/v1/flashcards/{job['result']['flashcards']}/cards").status_code == 200
    assert [item["id"] for item in client.get("/v1/jobs", params={"label": "on=postgres"}).json()["items"]] == [
        job["id"]
    ]
    assert 'flashcards_jobs{kind="capture",state="succeeded"}' in client.get("/metrics").text


def test_a_killed_worker_costs_nothing(stack, client, digits_npz):
    images = push_dataset(client, digits_npz)
    unbroken = digest_of_weights(finished(client, **TRAINING, dataset=images["id"]))
    job_id = submit(client, **TRAINING, dataset=images["id"])["id"]
    with client.stream("GET", f"/v1/jobs/{job_id}/events") as events:
        assert any(line == "event: resume_point" for line in events.iter_lines())
    stack.part("worker").kill()
    job = wait_for(client, job_id)
    assert job["state"] == "succeeded", job["error"]
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost", "succeeded"]
    assert digest_of_weights(job) == unbroken
