import time

import httpx
import numpy as np
import pytest
from making import finished, npz, push_dataset, push_model
from service_process import running_service


@pytest.fixture(scope="module")
def tidy(tmp_path_factory):
    """A service that collects all the time, and keeps what nothing refers to for a moment only."""
    settings = {"threads": 1, "collect_seconds": 0.2, "reap_seconds": 0.1, "collect_grace_seconds": 1}
    with running_service(tmp_path_factory.mktemp("tidy") / "home", **settings) as service:
        yield service


@pytest.fixture(scope="module")
def client(tidy):
    with httpx.Client(base_url=tidy.url, timeout=60) as client:
        yield client


def images(seed: int) -> bytes:
    return npz(x=np.random.default_rng(seed).integers(0, 256, (20, 8, 8), np.uint8))


def file_of(client, digest: str) -> dict | None:
    items = client.get("/v1/storage", params={"limit": 200}).json()["items"]
    return next((item for item in items if item["digest"] == digest), None)


def wait_until_gone(client, tidy, digest: str) -> None:
    deadline = time.monotonic() + 30
    while file_of(client, digest) or (tidy.home / "store" / "default" / digest).exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_what_is_kept_for_whom(client, digits_npz):
    dataset = push_dataset(client, digits_npz)
    spec = {"kind": "train", "architecture": "blk_1_fil_8", "epochs": 4, "learning_rate": 5e-3}
    job = finished(client, **spec, dataset=dataset["id"])
    model = client.get(f"/v1/models/{job['result']['model']}").json()
    body = client.get("/v1/storage", params={"limit": 200}).json()
    assert body["files"] == len(body["items"])
    assert body["bytes"] == sum(item["size"] for item in body["items"])
    assert body["kinds"]["models"]["bytes"] >= model["size"]
    assert file_of(client, model["digest"])["kept_for"] == [model["id"], f"{job['id']}/model.safetensors"]
    assert file_of(client, dataset["digest"]) == {
        "digest": dataset["digest"],
        "size": dataset["size"],
        "created_at": file_of(client, dataset["digest"])["created_at"],
        "kept_for": [dataset["id"]],
        "expires_at": None,
    }


def test_pages_meet(client):
    for seed in (2, 3, 4):
        push_dataset(client, images(seed))
    everything = [item["digest"] for item in client.get("/v1/storage", params={"limit": 200}).json()["items"]]
    seen, cursor = [], None
    while True:
        page = client.get("/v1/storage", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [item["digest"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == everything
    created = [item["created_at"] for item in client.get("/v1/storage", params={"limit": 200}).json()["items"]]
    assert created == sorted(created, reverse=True)


@pytest.mark.parametrize("cursor", ["x", "====", "bW9kZWxfMDAw", "a" * 201])
def test_a_bad_cursor_is_refused(client, cursor):
    assert client.get("/v1/storage", params={"cursor": cursor}).status_code == 422


def test_a_deleted_file_is_collected_once_nothing_refers_to_it(client, tidy):
    first, second = push_dataset(client, images(5)), push_dataset(client, images(5))
    assert first["digest"] == second["digest"]
    client.delete(f"/v1/datasets/{first['id']}")
    time.sleep(2)
    assert client.get(f"/v1/datasets/{second['id']}/file").content == images(5)
    client.delete(f"/v1/datasets/{second['id']}")
    wait_until_gone(client, tidy, first["digest"])


def test_what_a_deleted_job_made_stays_for_those_who_refer_to_it(client, tidy):
    model = push_model(client)
    job = finished(client, kind="capture", model=model["id"], count=3, r=1)
    cards = job["result"]["flashcards"]
    digests = {artifact["name"]: artifact["digest"] for artifact in job["artifacts"]}
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    wait_until_gone(client, tidy, digests["source.png"])
    assert client.get(f"/v1/flashcards/{cards}/cards").status_code == 200
    assert client.get(f"/v1/flashcards/{cards}/sheet.png").status_code == 200

    refused = client.delete(f"/v1/models/{model['id']}")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
    assert cards in refused.json()["detail"]
    assert client.delete(f"/v1/flashcards/{cards}").status_code == 204
    assert client.delete(f"/v1/models/{model['id']}").status_code == 204
    for digest in (digests["cards.npy"], digests["sheet.png"], model["digest"]):
        wait_until_gone(client, tidy, digest)


def test_a_deleted_artifact_is_collected_and_its_job_stays(client, tidy):
    job = finished(client, kind="capture", model=push_model(client)["id"], count=3, r=1)
    digests = {artifact["name"]: artifact["digest"] for artifact in job["artifacts"]}
    assert client.delete(f"/v1/jobs/{job['id']}/artifacts/source.png").status_code == 204
    assert client.delete(f"/v1/jobs/{job['id']}/artifacts/cards.npy").status_code == 204
    wait_until_gone(client, tidy, digests["source.png"])
    assert client.get(f"/v1/flashcards/{job['result']['flashcards']}/cards").status_code == 200
    left = [artifact["name"] for artifact in client.get(f"/v1/jobs/{job['id']}").json()["artifacts"]]
    assert left == ["sheet.png"]


def test_what_an_unfinished_job_needs_cannot_be_deleted(client):
    dataset = push_dataset(client, images(6))
    spec = {"kind": "train", "dataset": dataset["id"], "architecture": "blk_1_fil_2", "epochs": 100_000}
    job = client.post("/v1/jobs", json=spec).json()
    try:
        for path, words in (
            (f"/v1/datasets/{dataset['id']}", job["id"]),
            (f"/v1/jobs/{job['id']}", "cancel it"),
            (f"/v1/jobs/{job['id']}/artifacts/model.safetensors", "cancel it"),
        ):
            refused = client.delete(path)
            assert refused.status_code == 409
            assert words in refused.json()["detail"]
    finally:
        client.post(f"/v1/jobs/{job['id']}/cancel")
        client.get(f"/v1/jobs/{job['id']}", params={"wait": 30})
