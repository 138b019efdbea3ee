import json
import time

from making import finished, push_model


def lines_of(service) -> list[dict]:
    """`serve` prefixes what its parts print."""
    return [json.loads(line.split("| ", 1)[1]) for line in service.log.read_text().splitlines() if "| {" in line]


def asked_by(service, answer) -> list[dict]:
    return [line for line in lines_of(service) if line.get("request") == answer.headers["x-request-id"]]


def test_lines_carry_the_ids_of_request_job_and_attempt(locked, alice):
    job = finished(alice, kind="capture", model=push_model(alice)["id"], count=2, r=1)
    answer = alice.post("/v1/jobs", json={"kind": "noop"})
    deadline = time.monotonic() + 10
    while not (answered := [line for line in asked_by(locked, answer) if line["event"] == "request.answered"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # it is written when the answer is on its way
    assert len(answered) == 1
    assert answered[0]["key"].startswith("key_")
    # The worker may be faster than the answer: what it has written by now belongs to the job that was asked for.
    assert {line["job"] for line in asked_by(locked, answer) if line not in answered} <= {answer.json()["id"]}
    lines = lines_of(locked)
    ran = [line for line in lines if line.get("job") == job["id"] and line["event"].startswith("attempt.")]
    assert {line["event"] for line in ran} == {"attempt.started", "attempt.ended"}
    assert all(line["attempt"] == 1 for line in ran)
    for line in lines:
        if line["event"].startswith("request."):
            assert "request" in line
        if line["event"].startswith(("attempt.", "noop.")):
            assert {"job", "attempt"} <= line.keys()


def test_no_secret_is_ever_logged(locked, admin, admin_key, knock):
    made = admin.post("/v1/keys", json={"name": "secret"}).json()["key"]
    with knock(made) as client:
        client.get("/v1/jobs", params={"cursor": made})
        client.get(f"/v1/jobs/{made}")
        client.post("/v1/jobs", content=made.encode(), headers={"Content-Type": "application/json"})
        client.post("/v1/models", params={"name": made}, content=made.encode())
    text = locked.log.read_text()
    assert "request.answered" in text
    for secret in (made, admin_key, (locked.home / "key-secret").read_text().strip()):
        assert secret not in text
        assert secret[9:] not in text
