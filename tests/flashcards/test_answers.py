import json

import httpx
import pytest

from flashcards.client.answers import read, refusal
from flashcards.client.sse import Said, read_said
from flashcards.contract.resources import Event, Page, Progress
from flashcards.errors import ApiError, Conflict, ServiceFault, UnexpectedAnswer


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
