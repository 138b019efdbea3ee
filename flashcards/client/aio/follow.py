"""A job's events as they happen. A connection that drops is made again, and goes on after the last event seen."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import get_args

import httpx

from flashcards.client.aio.http import Http
from flashcards.client.aio.patience import LONG_PAUSES, PASSING_STATUSES, Pauses, no_answer
from flashcards.client.aio.resource import at
from flashcards.client.aio.sse import read_said
from flashcards.client.answers import read
from flashcards.contract.resources import TERMINAL_STATES, Event, Job
from flashcards.errors import ApiError, TimedOut

#: The service gives a sign of life every 15 seconds; three missed ones are a dead connection.
QUIET_SECONDS = 45.0
REOPEN_SECONDS = 1.0
KNOWN_KINDS = frozenset(get_args(Event.model_fields["kind"].annotation))


async def follow(http: Http, job_id: str, after: int = 0, deadline: float | None = None) -> AsyncIterator[Event]:
    """Until the job has ended, or the deadline (of the monotonic clock) has passed."""
    pauses = Pauses(LONG_PAUSES)
    ended = False
    while True:
        try:
            async for event in _one_connection(http, job_id, after, deadline):
                pauses.start_over()
                if event is None:
                    continue
                after = event.seq
                if event.kind == "state":
                    ended = event.data.get("state") in TERMINAL_STATES
                yield event
            if ended:
                return
            # Closed in good order before the end was told: a service that restarts, or an end we came too late for.
            ended = (await http.get(Job, at("/v1/jobs", job_id), pauses=LONG_PAUSES)).state in TERMINAL_STATES
            await asyncio.sleep(0 if ended else REOPEN_SECONDS)
        except httpx.TransportError as error:
            check(deadline, job_id)
            await pauses.take(no_answer(http.url, error))
        except ApiError as error:
            if error.status not in PASSING_STATUSES:
                raise
            await pauses.take(error)


async def _one_connection(http: Http, job_id: str, after: int, deadline: float | None) -> AsyncIterator[Event | None]:
    """Events, and None for signs of life."""
    quiet = QUIET_SECONDS if deadline is None else max(0.01, min(QUIET_SECONDS, deadline - time.monotonic()))
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    async with http.stream(at("/v1/jobs", job_id, "events"), headers=headers, timeout=quiet) as answer:
        async for said in read_said(answer.aiter_bytes()):
            check(deadline, job_id)
            # A newer service may tell of things that this client does not know.
            yield read(Event, said.data.encode()) if said and said.kind in KNOWN_KINDS else None


def check(deadline: float | None, job_id: str) -> None:
    if deadline is not None and time.monotonic() >= deadline:
        raise TimedOut(f"{job_id} has not ended in the time given; it goes on")
