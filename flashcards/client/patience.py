"""Ask again when the trouble is likely to pass. Every POST carries a key, so asking again does nothing twice."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import httpx

from flashcards.errors import ApiError, ConnectionFailed

Value = TypeVar("Value")

PAUSES = (0.25, 0.5, 1.0, 2.0)
#: Whoever waits for a job sits out a restart of the service.
LONG_PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0, *[5.0] * 10)
LONGEST_PAUSE = 30.0
PASSING_STATUSES = frozenset({502, 503, 504})
IN_FLIGHT = "/problems/idempotency-key-in-flight"
#: The key of a request whose API process was killed stays taken for a minute.
TWIN_SECONDS = 75.0


def patiently(url: str, ask: Callable[[], Value], pauses: Sequence[float] = PAUSES) -> Value:
    left = list(pauses)
    twin_until = time.monotonic() + TWIN_SECONDS
    while True:
        try:
            return ask()
        except httpx.TransportError as error:
            if not left:
                raise ConnectionFailed(url, str(error) or type(error).__name__) from error
            pause = left.pop(0)
        except ApiError as error:
            if error.problem.type == IN_FLIGHT and time.monotonic() < twin_until:
                pause = error.retry_after or 1.0
            elif error.status in PASSING_STATUSES and left:
                pause = max(left.pop(0), error.retry_after or 0.0)
            else:
                raise
        time.sleep(min(pause, LONGEST_PAUSE))
