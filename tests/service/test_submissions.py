import json
import time

import pytest
from making import make_key


@pytest.fixture(scope="module")
def send(locked):
    """By the embedded broker, as the guide says."""

    def send(**fields) -> None:
        draft = locked.home / "broker" / "flashcards.submit" / f"{time.time_ns()}.tmp"
        draft.write_text(json.dumps(fields))
        draft.rename(draft.with_suffix(".msg"))

    return send


def settled(client, id: str) -> dict:
    for _ in range(600):
        if (answer := client.get(f"/v1/submissions/{id}")).status_code == 200:
            return answer.json()
        time.sleep(0.05)
    raise TimeoutError(answer.text)


@pytest.fixture(scope="module")
def key(admin) -> str:
    return make_key(admin, tenant="carol", scopes=["write"])


@pytest.fixture(scope="module")
def carol(knock, admin):
    with knock(make_key(admin, tenant="carol", scopes=["read"])) as client:
        yield client


def test_until_it_was_read_it_is_not_there(carol):
    answer = carol.get("/v1/submissions/never-sent")
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no submission never-sent")


def test_an_id_that_cannot_be_one(carol):
    assert carol.get("/v1/submissions/a%20b").status_code == 422


def test_accepted_it_names_the_job(carol, send, key):
    send(id="good", token=key, job={"kind": "noop"})
    found = settled(carol, "good")
    assert (found["state"], found["problem"], found["conflicts"]) == ("accepted", None, [])
    assert carol.get(f"/v1/jobs/{found['job']}").json()["kind"] == "noop"


def test_rejected_it_says_what_http_would_have_said(carol, alice, send, key):
    job = {"kind": "capture", "model": "model_" + "0" * 32, "count": 0}
    send(id="bad", token=key, job=job)
    found = settled(carol, "bad")
    answer = alice.post("/v1/jobs", json=job).json()
    assert (found["state"], found["job"]) == ("rejected", None)
    for words in ("type", "title", "status"):
        assert found["problem"][words] == answer[words]
    by_queue, by_http = (problem["errors"][0] for problem in (found["problem"], answer))
    assert by_queue["message"] == by_http["message"]
    assert (by_queue["field"], by_http["field"]) == ("job.capture.count", "body.capture.count")


def test_another_body_under_an_id_is_shown_beside_the_first(carol, send, key):
    send(id="reused", token=key, job={"kind": "noop"})
    first = settled(carol, "reused")
    send(id="reused", token=key, job={"kind": "noop", "max_attempts": 5})
    for _ in range(600):
        if (found := settled(carol, "reused"))["conflicts"]:
            break
        time.sleep(0.05)
    assert found["conflicts"][0]["problem"]["type"] == "/problems/submission-id-reused"
    assert (found["state"], found["job"]) == ("accepted", first["job"])


def test_what_came_without_a_key_is_shown_to_whoever_runs_the_service(admin, carol, send):
    send(id="nobodys", job={"kind": "noop"})
    assert settled(admin, "nobodys")["problem"]["status"] == 401
    assert carol.get("/v1/submissions/nobodys").status_code == 404
    assert "nobodys" in admin.get("/v1/submissions").text
    assert "nobodys" not in carol.get("/v1/submissions").text


def test_pages_and_states(carol, send, key):
    for n in range(3):
        send(id=f"page-{n}", token=key, job={"kind": "noop"} if n else {"kind": "nap"})
        settled(carol, f"page-{n}")
    first = carol.get("/v1/submissions", params={"limit": 2}).json()
    assert [item["id"] for item in first["items"]] == ["page-2", "page-1"]
    second = carol.get("/v1/submissions", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert second["items"][0]["id"] == "page-0"
    rejected = carol.get("/v1/submissions", params={"state": "rejected"}).json()["items"]
    assert rejected[0]["id"] == "page-0"
    assert {item["state"] for item in rejected} == {"rejected"}
    accepted = carol.get("/v1/submissions", params={"state": "accepted"}).json()["items"]
    assert {item["state"] for item in accepted} == {"accepted"}


def test_a_queue_to_announce_on_is_checked_by_http_too(alice):
    answer = alice.post("/v1/jobs", json={"kind": "noop", "announce": "cpu"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "body.announce")
