"""Ask again when the trouble is likely to pass. Every POST carries a key, so asking again does nothing twice."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from typing import TypeVar

import httpx

from flashcards.errors import ApiError, ConnectionFailed

Value = TypeVar("Value")

PAUSES = (0.25, 0.5, 1.0, 2.0)
#: Whoever waits for a job sits out a restart of the service.
LONG_PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0, *[5.0] * 10)
LONGEST_PAUSE = 30.0
PASSING_STATUSES = frozenset({429, 502, 503, 504})
IN_FLIGHT = "/problems/idempotency-key-in-flight"
#: The key of a request whose API process was killed stays taken for a minute.
TWIN_PAUSES = (1.0,) * 75


class Pauses:
    """Longer and longer ones; when they are used up, the trouble is no longer a passing one."""

    def __init__(self, lengths: Sequence[float]) -> None:
        self._lengths = lengths
        self._used = 0

    async def take(self, trouble: Exception, at_least: float = 0.0) -> None:
        if self._used == len(self._lengths):
            raise trouble
        await asyncio.sleep(min(max(self._lengths[self._used], at_least), LONGEST_PAUSE))
        self._used += 1

    def start_over(self) -> None:
        self._used = 0


def within(seconds: float) -> list[float]:
    """As many of the long pauses as there is time for."""
    return [pause for pause, total in zip(LONG_PAUSES, accumulate(LONG_PAUSES), strict=True) if total <= seconds]


async def patiently(url: str, ask: Callable[[], Awaitable[Value]], lengths: Sequence[float] = PAUSES) -> Value:
    pauses, twin_pauses = Pauses(lengths), Pauses(TWIN_PAUSES)
    while True:
        try:
            return await ask()
        except httpx.TransportError as error:
            await pauses.take(no_answer(url, error))
        except ApiError as error:
            if error.problem.type == IN_FLIGHT:
                await twin_pauses.take(error, error.retry_after or 0.0)
            elif error.status in PASSING_STATUSES:
                await pauses.take(error, error.retry_after or 0.0)
            else:
                raise


def no_answer(url: str, error: httpx.TransportError) -> ConnectionFailed:
    return ConnectionFailed(url, str(error) or type(error).__name__)
