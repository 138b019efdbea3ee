import json

import httpx
import pytest

from flashcards.client.answers import read, refusal
from flashcards.client.patience import patiently
from flashcards.client.sse import Said, read_said
from flashcards.client.transfer import save
from flashcards.contract.resources import Event, Page, Problem, Progress
from flashcards.errors import ApiError, Conflict, ConnectionFailed, ServiceFault, UnexpectedAnswer, api_error


def test_a_newer_service_may_say_more():
    progress = {"fraction": 0.5, "step": 3, "mood": "good"}
    answer = {"items": [progress], "next_cursor": None, "total": 1}
    assert read(Page[Progress], json.dumps(answer).encode()).items == [Progress(fraction=0.5, step=3)]


def test_something_else_at_the_address_is_told_apart():
    with pytest.raises(UnexpectedAnswer, match="Progress"):
        read(Progress, b"<html>Welcome to nginx</html>")


@pytest.mark.parametrize(("status", "kind"), [(409, Conflict), (418, ApiError), (502, ServiceFault)])
def test_a_proxy_in_between_has_words_of_its_own(status, kind):
    error = refusal(httpx.Response(status, text="no upstream", headers={"Retry-After": "7"}))
    assert type(error) is kind
    assert (error.status, error.problem.detail, error.retry_after) == (status, "no upstream", 7)


def test_events_are_read_from_pieces_of_any_size():
    data = {"seq": 1, "kind": "log", "attempt": 1, "at": "2026-01-01T00:00:00Z", "data": {"line": "a\u2028b\x85c"}}
    text = json.dumps(data, ensure_ascii=False)
    first = f"retry: 1000\n\n: still here\n\nevent: log\r\ndata: {text}\nid: 1\n\n"
    stream = f"{first}data: one\ndata: two\n\ndata: cut".encode()
    said = [each for each in read_said(stream[place : place + 1] for place in range(len(stream))) if each]
    assert said == [Said("log", text), Said("message", "one\ntwo")]
    assert read(Event, said[0].data.encode()).data["line"] == "a\u2028b\x85c"


def test_a_file_that_was_damaged_on_the_way_is_not_kept(tmp_path):
    answer = httpx.Response(200, content=b"weights")
    with pytest.raises(UnexpectedAnswer, match="digest"):
        save(answer, tmp_path, "model.safetensors", "0" * 64)
    assert list(tmp_path.iterdir()) == []


def trouble(status: int, type: str = "about:blank", retry_after: float | None = None) -> ApiError:
    problem = Problem(type=type, title="trouble", status=status, detail="")
    return api_error(problem, status, retry_after)


@pytest.mark.parametrize(
    "passing",
    [
        trouble(503),
        trouble(502, retry_after=0.01),
        httpx.ReadError("the connection broke"),
    ],
)
def test_what_passes_is_asked_again(passing):
    answers = [passing, passing, "done"]

    def ask():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert patiently("http://here", ask, lengths=(0.0, 0.0)) == "done"


def test_the_answer_to_a_twin_in_flight_is_waited_for():
    answers = [trouble(409, "/problems/idempotency-key-in-flight", retry_after=0.01), None]

    def ask():
        if answer := answers.pop(0):
            raise answer
        return "done"

    assert patiently("http://here", ask, lengths=()) == "done"


def test_trouble_that_does_not_pass_is_raised_in_the_end():
    def ask():
        raise httpx.ConnectError("refused")

    with pytest.raises(ConnectionFailed, match=r"http://here \(refused\)"):
        patiently("http://here", ask, lengths=(0.0, 0.0))


@pytest.mark.parametrize("lasting", [trouble(404), trouble(409), trouble(500)])
def test_what_lasts_is_raised_at_once(lasting):
    asked = []

    def ask():
        asked.append(1)
        raise lasting

    with pytest.raises(type(lasting)):
        patiently("http://here", ask, lengths=(0.0, 0.0))
    assert len(asked) == 1
