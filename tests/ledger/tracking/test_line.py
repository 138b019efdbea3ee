import time
from contextlib import closing

import httpx
import pytest
from service_process import free_port
from tracking import answering_server, silent_server

from ledger.errors import TrackerAway, TrackerRefused
from ledger.tracking.line import Known, Line, Unknown


def ask(url: str, seconds: float = 1.0):
    with closing(Line(url, "", seconds)) as line:
        return line.post("api/2.0/mlflow/runs/search", {"max_results": 1})


def test_nobody_there_is_away():
    with pytest.raises(TrackerAway, match="does not answer"):
        ask(f"http://127.0.0.1:{free_port()}")


def test_a_server_that_accepts_and_says_nothing_is_away_in_time():
    with silent_server() as url:
        began = time.monotonic()
        with pytest.raises(TrackerAway, match="in time"):
            ask(url)
        assert time.monotonic() - began < 10


def test_an_answer_a_byte_at_a_time_is_no_answer():
    with answering_server(200, b'{"runs": []}' + b" " * 1000, drip_seconds=0.2) as (url, _):
        began = time.monotonic()
        with pytest.raises(TrackerAway, match="in time"):
            ask(url)
        assert time.monotonic() - began < 20


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_trouble_that_passes_is_away(status):
    with answering_server(status, b"oh") as (url, _), pytest.raises(TrackerAway, match=str(status)):
        ask(url)


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (404, b'{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no run"}', Unknown, "no run"),
        (400, b'{"error_code": "RESOURCE_ALREADY_EXISTS", "message": "there"}', Known, "there"),
        (400, b'{"error_code": "INVALID_PARAMETER_VALUE", "message": "bad key"}', TrackerRefused, "400 bad key"),
        (401, b"<html>", TrackerRefused, "FLASHCARDS_MLFLOW_TOKEN"),
        (403, b"[]", TrackerRefused, "FLASHCARDS_MLFLOW_URL"),
        (200, b"<html>a login page", TrackerRefused, "is the address right"),
        (200, b'["a list"]', TrackerRefused, "is the address right"),
    ],
)
def test_a_refusal_in_words(status, body, kind, words):
    with answering_server(status, body) as (url, _), pytest.raises(kind, match=words):
        ask(url)


def test_no_redirect_is_followed():
    with (
        answering_server(200, b"{}") as (elsewhere, asked),
        answering_server(307, b"", Location=elsewhere) as (url, _),
        pytest.raises(TrackerRefused, match="307"),
    ):
        ask(url)
    assert asked == []


def test_more_than_anybody_asked_for_is_cut_off(tmp_path):
    with (
        answering_server(200, b"x" * 5000) as (url, _),
        closing(Line(url, "", 5)) as line,
        pytest.raises(TrackerRefused, match="longer than"),
    ):
        line.save("file", {}, tmp_path / "file", 1000)


def test_who_we_are(monkeypatch):
    seen = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append((str(request.url), request.headers.get("Authorization")))
        return httpx.Response(200, json={})

    for url, token in (("https://me:pa%20ss@tracker.example/base", ""), ("https://tracker.example", "abc")):
        line = Line(url, token, 5)
        line._client._transport = httpx.MockTransport(handle)
        line._client._mounts = {}
        line.get("api/x", {})
    assert seen == [
        ("https://tracker.example/base/api/x", "Basic bWU6cGEgc3M="),
        ("https://tracker.example/api/x", "Bearer abc"),
    ]
