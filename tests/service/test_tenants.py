"""Another tenant's key on every route that the document names. A new route is tested by being there."""

import json
import re
import time

import pytest
from making import finished, make_key, push_dataset, push_model
from pieces import begin

#: Of these each caller gets its own, or what belongs to nobody.
LISTS = {
    "/v1/models",
    "/v1/datasets",
    "/v1/flashcards",
    "/v1/learners",
    "/v1/jobs",
    "/v1/keys",
    "/v1/storage",
    "/v1/webhooks",
    "/v1/submissions",
    "/v1/uploads",
}
#: What routes take that read a body as JSON: a body that makes no sense is refused before anything is looked for.
BODIES = {
    "/v1/learners/{learner_id}/tasks": {"dataset": "dataset_" + "0" * 32},
    "/v1/learners/{learner_id}/rollback": {"version": 0},
    "/v1/webhooks/{webhook_id}/rotate": {"grace_hours": 1},
    "/v1/uploads/{upload_id}/links": {"parts": [1]},
}
NOBODYS = {"/healthz", "/readyz", "/metrics"}


@pytest.fixture(scope="module")
def document(api):
    return api.get("/openapi.json").json()


@pytest.fixture(scope="module")
def belongings(alice, admin, locked, digits_npz):
    """What stands for each parameter of a path. A parameter that is not here fails the test that meets it."""
    dataset = push_dataset(alice, digits_npz)
    model = push_model(alice)
    hook = {"url": "https://hooks.invalid/", "events": ["job.succeeded"]}
    webhook = alice.post("/v1/webhooks", json=hook).json()
    job = finished(alice, kind="capture", model=model["id"], count=2, r=1)
    (delivery,) = alice.get(f"/v1/webhooks/{webhook['id']}/deliveries").json()["items"]
    return {
        "model_id": model["id"],
        "dataset_id": dataset["id"],
        "job_id": job["id"],
        "flashcards_id": job["result"]["flashcards"],
        "learner_id": alice.post("/v1/learners", json={"model": model["id"]}).json()["id"],
        "webhook_id": webhook["id"],
        "delivery_id": delivery["id"],
        "upload_id": begin(alice, digits_npz)["id"],
        "part": "1",
        "number": "0",
        "task": "1",
        "name": "cards.npy",
        "submission_id": submitted(locked, make_key(admin, tenant="alice", scopes=["write"]), alice)["id"],
        "key_id": alice.get("/v1/keys").json()["items"][0]["id"],
    }


def submitted(locked, key: str, alice) -> dict:
    """By the broker, and read by the worker."""
    message = locked.home / "broker" / "flashcards.submit" / "of-alice.tmp"
    message.write_text(json.dumps({"id": "of_alice", "token": key, "job": {"kind": "noop"}}))
    message.rename(message.with_suffix(".msg"))
    for _ in range(300):
        if (answer := alice.get("/v1/submissions/of_alice")).status_code == 200:
            return answer.json()
        time.sleep(0.1)
    raise TimeoutError(answer.text)


def operations(document) -> list[tuple[str, str]]:
    return [(path, method) for path, known in document["paths"].items() for method in known]


def fill(path: str, belongings: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda hole: belongings[hole[1]], path)


def snapshot(client) -> dict[str, object]:
    return {path: client.get(path).json() for path in sorted(LISTS - {"/v1/keys"})}


def test_what_is_anothers_is_not_there(document, alice, mallory, belongings):
    before = snapshot(alice)
    tried = 0
    for path, method in operations(document):
        if "{" not in path:
            continue
        body = {"json": BODIES[path]} if path in BODIES else {"content": b"x"}
        answer = mallory.request(method, fill(path, belongings), params={"follow": False}, **body)
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found"), (method, path)
        tried += 1
    assert tried >= 20
    assert snapshot(alice) == before


def test_lists_show_only_ones_own(document, alice, mallory, belongings):
    mine = {id for id in belongings.values() if "_" in id}
    for path, method in operations(document):
        if method != "get" or "{" in path or path in NOBODYS:
            continue
        assert path in LISTS, f"{path} is new: is it a list of the caller's own?"
        answer = mallory.get(path)
        assert answer.status_code == 200
        assert not any(id in answer.text for id in mine), path


def test_a_job_cannot_read_what_is_anothers(mallory, belongings):
    for spec in (
        {"kind": "capture", "model": belongings["model_id"]},
        {"kind": "train", "dataset": belongings["dataset_id"]},
        {"kind": "evaluate", "model": belongings["model_id"], "dataset": belongings["dataset_id"]},
        {"kind": "predict", "model": belongings["model_id"], "dataset": belongings["dataset_id"]},
        {"kind": "learn", "learner": belongings["learner_id"], "dataset": belongings["dataset_id"]},
    ):
        assert mallory.post("/v1/jobs", json=spec).status_code == 422
    assert mallory.post("/v1/learners", json={"model": belongings["model_id"]}).status_code == 422


def test_without_a_key_every_route_is_closed(document, knock, belongings):
    with knock(None) as nobody:
        for path, method in operations(document):
            if path in ("/healthz", "/readyz"):
                continue
            answer = nobody.request(method, fill(path, belongings))
            assert answer.status_code == 401, (method, path)


def test_a_reader_changes_nothing(document, admin, alice, knock, belongings):
    before = snapshot(alice)
    with knock(make_key(admin, tenant="alice", scopes=["read"])) as reader:
        for path, method in operations(document):
            if method == "get":
                continue
            answer = reader.request(method, fill(path, belongings))
            assert (answer.status_code, answer.json()["type"]) == (403, "/problems/scope"), (method, path)
    assert snapshot(alice) == before


def test_the_same_bytes_of_two_tenants_are_two_files(locked, alice, mallory, digits_npz):
    mine, theirs = push_dataset(alice, digits_npz), push_dataset(mallory, digits_npz)
    assert mine["digest"] == theirs["digest"]
    for tenant in ("alice", "mallory"):
        assert (locked.home / "store" / tenant / mine["digest"]).exists()


def test_an_idempotency_key_belongs_to_its_tenant(alice, mallory):
    headers = {"Idempotency-Key": "the-same-words"}
    first = alice.post("/v1/jobs", json={"kind": "noop"}, headers=headers).json()
    second = mallory.post("/v1/jobs", json={"kind": "noop"}, headers=headers).json()
    assert first["id"] != second["id"]
