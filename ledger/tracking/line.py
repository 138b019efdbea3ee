"""Requests to a tracking server: each ends in time, and whatever goes wrong is one of two things.

A server may accept and never answer, answer a byte a minute, or send more than anybody asked for.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from ledger.errors import TrackerAway, TrackerRefused

MOST_SAID = 16 * 1024**2  # no answer but a file is longer
#: A file is stored before it is answered for, and may be long: per megabyte, beside what every request has.
SECONDS_A_MIB = 2.0
CHUNK = 1024**2
PASSES = frozenset({408, 425, 429})  # and everything from 500 on
AWAY = "the tracking server does not answer"


class Unknown(TrackerRefused):
    """It has no such thing."""


class Known(TrackerRefused):
    """It has that already."""


class Line:
    def __init__(self, url: str, token: str, timeout_seconds: float) -> None:
        address = httpx.URL(url)
        self._seconds = timeout_seconds
        self._client = httpx.Client(
            base_url=address.copy_with(username=None, password=None),
            auth=(address.username, address.password) if address.username else None,
            headers={"Authorization": f"Bearer {token}"} if token else None,
            timeout=timeout_seconds,
            follow_redirects=False,
            trust_env=not _is_here(address.host),  # no proxy leads back to this machine
        )

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask("GET", path, params=dict(query))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask("POST", path, json=dict(body))

    def put(self, path: str, content: Path | bytes) -> None:
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        seconds = self._seconds + SECONDS_A_MIB * size / CHUNK
        told = {"content": _chunks(content), "headers": {"Content-Length": str(size)}}
        with self._asked("PUT", quote(path), seconds, timeout=seconds, **told):
            pass

    def save(self, path: str, query: Mapping[str, Any], to: Path, most: int) -> bool:
        """The answer as a file; False: there is no such file."""
        try:
            with self._asked("GET", path, None, params=dict(query)) as answer, to.open("wb") as file:
                for chunk in _within(answer, None, most):
                    file.write(chunk)
        except Unknown:
            return False
        return True

    def _ask(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        deadline = time.monotonic() + self._seconds
        with self._asked(method, path, self._seconds, **request) as answer:
            content = b"".join(_within(answer, deadline, MOST_SAID))
        try:
            return dict(httpx.Response(200, content=content).json())
        except (ValueError, TypeError):
            raise TrackerRefused(
                "it answers with something that is not an answer of MLflow: is the address right?"
            ) from None

    @contextmanager
    def _asked(self, method: str, path: str, seconds: float | None, **request: Any) -> Iterator[httpx.Response]:
        try:
            with self._client.stream(method, path, **request) as answer:
                if answer.status_code != 200:
                    deadline = time.monotonic() + (seconds or self._seconds)
                    raise _refusal(answer, b"".join(_within(answer, deadline, MOST_SAID)))
                yield answer
        except httpx.TimeoutException:
            raise TrackerAway(f"{AWAY} in time") from None
        except httpx.HTTPError as error:
            raise TrackerAway(f"{AWAY} ({type(error).__name__})") from None


def _within(answer: httpx.Response, deadline: float | None, most: int) -> Iterator[bytes]:
    size = 0
    for chunk in answer.iter_bytes():
        size += len(chunk)
        if size > most:
            raise TrackerRefused(f"what it sends is longer than {most:,} bytes", final=True)
        if deadline is not None and time.monotonic() > deadline:
            raise TrackerAway(f"{AWAY} in time")
        yield chunk


def _refusal(answer: httpx.Response, content: bytes) -> TrackerAway | TrackerRefused:
    status = answer.status_code
    if status >= 500 or status in PASSES:
        return TrackerAway(f"{AWAY}: {status}")
    code, words = _said(content)
    if status == 404 or code == "RESOURCE_DOES_NOT_EXIST":
        return Unknown(words or "it has no such thing", final=True)
    if code == "RESOURCE_ALREADY_EXISTS":
        return Known(words)
    if status in (401, 403):
        return TrackerRefused("it wants another name or token: FLASHCARDS_MLFLOW_URL, FLASHCARDS_MLFLOW_TOKEN")
    return TrackerRefused(f"{status} {words}".strip())


def _said(content: bytes) -> tuple[str, str]:
    try:
        said = httpx.Response(200, content=content).json()
        return str(said.get("error_code", "")), str(said.get("message", ""))[:300]
    except (ValueError, AttributeError):
        return "", ""


def _chunks(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
