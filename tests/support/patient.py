"""A client that asks again as long as the trouble is likely to pass. Its POSTs have keys, so each is done once."""

import time
from typing import Any

import httpx

PASSING = frozenset({502, 503, 504, 507})
IN_FLIGHT = "/problems/idempotency-key-in-flight"


class Defect(Exception):
    """An answer that a client must never get."""


class Patient:
    def __init__(self, seconds: float = 120, pause: float = 0.25) -> None:
        self._client = httpx.Client(timeout=30, trust_env=False)
        self._seconds = seconds
        self._pause = pause
        self.asked_again = 0

    def close(self) -> None:
        self._client.close()

    def ask(self, method: str, url: str, key: str | None = None, **request: Any) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        deadline = time.monotonic() + self._seconds
        said = ""
        while time.monotonic() < deadline:
            try:
                answer = self._client.request(method, url, headers=headers, **request)
            except httpx.TransportError as error:
                said = repr(error)
            else:
                if not _passes(answer):
                    return answer
                said = answer.text
            self.asked_again += 1
            time.sleep(self._pause)
        raise TimeoutError(f"{method} {url}: {said}")


def _passes(answer: httpx.Response) -> bool:
    if answer.status_code >= 500 and answer.status_code not in PASSING:
        raise Defect(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}")
    in_flight = answer.status_code == 409 and answer.json().get("type") == IN_FLIGHT
    return in_flight or answer.status_code in PASSING
