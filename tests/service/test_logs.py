import json
import time

from making import finished, push_model


def lines_of(service) -> list[dict]:
    """`serve` prefixes what its parts print."""
    return [json.loads(line.split("| ", 1)[1]) for line in service.log.read_text().splitlines() if "| {" in line]


def test_lines_carry_the_ids_of_request_job_and_attempt(locked, alice):
    job = finished(alice, kind="capture", model=push_model(alice)["id"], count=2, r=1)
    answer = alice.post("/v1/jobs", json={"kind": "noop"})
    deadline = time.monotonic() + 10
    while not (asked := [line for line in lines_of(locked) if line.get("request") == answer.headers["x-request-id"]]):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # it is written when the answer is on its way
    lines = lines_of(locked)
    assert [line["event"] for line in asked] == ["request.answered"]
    assert asked[0]["key"].startswith("key_")
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
