import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::ffff:8.8.8.8]", "a b", ""]
)
def test_a_foreign_host_is_refused(api, host):
    answer = api.get("/v1/jobs", headers={"Host": host})
    assert answer.status_code in (400, 403)
    if answer.status_code == 403:
        assert answer.json()["type"] == "/problems/foreign-host"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost.evil.example", "http://[bad"])
def test_a_foreign_origin_is_refused(api, origin):
    answer = api.post("/v1/jobs", json={}, headers={"Origin": origin})
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/foreign-origin")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "127.0.0.9", "LOCALHOST:1234"])
def test_this_machine_is_answered(api, host):
    assert api.get("/healthz", headers={"Host": host, "Origin": "http://localhost:3000"}).status_code == 200


def test_every_answer_has_an_id_and_is_not_sniffed(api):
    answer = api.get("/nowhere")
    assert answer.status_code == 404
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["instance"] == answer.headers["x-request-id"]


def test_a_wrong_method_says_which_are_right(api):
    answer = api.put("/v1/jobs")
    assert answer.status_code == 405
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["allow"] == "POST, GET"


@pytest.mark.parametrize("module", ["service", "service.api"])
def test_an_open_bind_without_keys_refuses_to_start(service, module):
    ended = subprocess.run(
        [sys.executable, "-m", module],
        env={**service.environment, "FLASHCARDS_HOST": "0.0.0.0"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 1
    assert "without keys" in ended.stderr
