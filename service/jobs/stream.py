"""A job's events as they happen (SSE). Each has its `seq` as id, so a client that comes back misses nothing."""

import asyncio
from collections.abc import AsyncIterator

from fastapi.sse import format_sse_event
from sqlalchemy.exc import DBAPIError

from flashcards.contract.resources import TERMINAL_STATES
from ledger import events, jobs
from ledger.errors import NotFound
from service.deps import House
from service.watch import LOOK, News, as_sse

KEEP_ALIVE_SECONDS = 15
AT_ONCE = 500

#: One event of the stream, for the API document; `data` is an event in the form of the list.
SENT_EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "the seq of the event"},
        "event": {"type": "string", "description": "its kind"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"$ref": "#/components/schemas/Event"},
        },
    },
    "required": ["id", "event", "data"],
}


async def stream(house: House, tenant: str, job_id: str, after: int) -> AsyncIterator[bytes]:
    """Until the job has ended and everything was sent, or the job is deleted, or the service closes.

    With the record away it ends too: whoever watches comes back, and goes on after the last event it has seen.
    """
    yield format_sse_event(retry=1000)
    news: News | None = LOOK
    while not house.watch.closing:
        if news is LOOK:
            try:
                news = await asyncio.to_thread(_look, house, tenant, job_id, after)
            except (NotFound, DBAPIError):
                return
        if news is None:
            yield format_sse_event(comment="still here")
        elif news.events:
            after = news.events[-1][0]
            yield b"".join(line for _, line in news.events)
        if news is not None and news.ended:
            return
        news = await house.watch.news(job_id, after, KEEP_ALIVE_SECONDS)


def _look(house: House, tenant: str, job_id: str, after: int) -> News:
    """Events first: PostgreSQL lets the second query see more than the first. A job that was read before its last event
    would pass for running although that event is here, and nothing would ever wake the stream again."""
    with house.db.read() as session:
        rows = events.after(session, job_id, after, AT_ONCE)
        job = jobs.find(session, tenant, job_id)
    last = rows[-1].seq if rows else after
    return News([(row.seq, as_sse(row)) for row in rows], job.state in TERMINAL_STATES and last >= job.seq)
