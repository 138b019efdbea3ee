"""A job's events as they happen (SSE). Each has its `seq` as id, so a client that comes back misses nothing."""

import asyncio
from collections.abc import AsyncIterator

from fastapi.sse import format_sse_event

from flashcards.contract.resources import TERMINAL_STATES, Event
from ledger import events, jobs
from ledger.errors import NotFound
from service import views
from service.deps import House

KEEP_ALIVE_SECONDS = 15


async def stream(house: House, tenant: str, job_id: str, after: int) -> AsyncIterator[bytes]:
    """Until the job has ended and everything was sent, or the job is deleted, or the service closes."""
    yield format_sse_event(retry=1000)
    while not house.watch.closing:
        try:
            fresh, ended = await asyncio.to_thread(_look, house, tenant, job_id, after)
        except NotFound:
            return
        for event in fresh:
            after = event.seq
            yield format_sse_event(event=event.kind, id=str(event.seq), data_str=event.model_dump_json())
        if fresh:
            continue
        if ended:
            return
        if not await house.watch.changed(job_id, after, KEEP_ALIVE_SECONDS):
            yield format_sse_event(comment="still here")


def _look(house: House, tenant: str, job_id: str, after: int) -> tuple[list[Event], bool]:
    with house.db.read() as session:
        job = jobs.find(session, tenant, job_id)
        fresh = [views.event(row) for row in events.after(session, job_id, after)]
    return fresh, job.state in TERMINAL_STATES
