"""Waiting for jobs: one poller a process asks the ledger once a tick for every job that anybody watches.

What is new is read once and put into bytes once, however many wait for it. Those who lag behind read for themselves.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from fastapi.sse import format_sse_event
from sqlalchemy import Row, bindparam, select, tuple_
from sqlalchemy.exc import DBAPIError

from flashcards.contract.resources import TERMINAL_STATES
from ledger.db import Database
from ledger.tables import Event, Job
from service import views

AT_ONCE = 500
READ_AHEAD = 50  # events of one job in one tick; who is further behind reads for itself

STANDING = select(Job.id, Job.seq, Job.state).where(Job.id.in_(bindparam("ids", expanding=True)))
NEW_EVENTS = (
    select(Event.job_id, Event.seq, Event.kind, Event.attempt, Event.at, Event.data)
    .where(tuple_(Event.job_id, Event.seq).in_(bindparam("places", expanding=True)))
    .order_by(Event.job_id, Event.seq)
)
Place = tuple[str, int]


@dataclass(frozen=True)
class News:
    """Events as they are sent, in order, and whether the job has ended with the last of them."""

    events: list[tuple[int, bytes]]
    ended: bool


#: Something has happened, and the one who waited must look for itself.
LOOK = News([], ended=False)
Waiter = tuple[int, "asyncio.Future[News]"]


class Watch:
    def __init__(self, db: Database, tick_seconds: float) -> None:
        self._db = db
        self._tick = tick_seconds
        self._waiting: dict[str, set[Waiter]] = defaultdict(set)
        self._poller: asyncio.Task[None] | None = None
        self.closing = False

    async def changed(self, job_id: str, seq: int, timeout: float) -> bool:
        """True once the job has events after `seq`, or is gone, or the service closes; False when the time is up."""
        return await self.news(job_id, seq, timeout) is not None

    async def news(self, job_id: str, seq: int, timeout: float) -> News | None:
        """The events after `seq` once there are some; `LOOK` when they are not at hand; None when the time is up."""
        if self.closing:
            return LOOK
        future: asyncio.Future[News] = asyncio.get_running_loop().create_future()
        waiter = (seq, future)
        self._waiting[job_id].add(waiter)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            return await asyncio.wait_for(future, timeout)
        except TimeoutError:
            return None
        finally:
            self._waiting[job_id].discard(waiter)
            if not self._waiting[job_id]:
                del self._waiting[job_id]

    async def _poll(self) -> None:
        while self._waiting and not self.closing:
            seen = {job_id: min(seq for seq, _ in waiters) for job_id, waiters in self._waiting.items()}
            with suppress(DBAPIError):  # away for a moment; the next tick asks again
                self._wake(seen, await asyncio.to_thread(self._read, seen))
            await asyncio.sleep(self._tick)

    def _read(self, seen: dict[str, int]) -> dict[str, News]:
        """By job, of those that have changed: what has happened since the first of its waiters looked."""
        ids = list(seen)
        with self._db.read() as session:
            standing = {
                row.id: row
                for start in range(0, len(ids), AT_ONCE)
                for row in session.execute(STANDING, {"ids": ids[start : start + AT_ONCE]})
            }
            changed = [row for row in standing.values() if row.seq > seen[row.id]]
            places = [
                (row.id, seq)
                for row in changed
                if row.seq - seen[row.id] <= READ_AHEAD
                for seq in range(seen[row.id] + 1, row.seq + 1)
            ]
            lines: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
            for start in range(0, len(places), AT_ONCE):
                for event in session.execute(NEW_EVENTS, {"places": places[start : start + AT_ONCE]}):
                    lines[event.job_id].append((event.seq, as_sse(event)))
        found = {row.id: News(lines[row.id], row.state in TERMINAL_STATES) for row in changed}
        return found | {job_id: LOOK for job_id in seen if job_id not in standing}

    def _wake(self, seen: Iterable[str], found: dict[str, News]) -> None:
        for job_id in seen:
            news = found.get(job_id)
            if news is not None:
                self._tell(self._waiting.get(job_id, set()), news)

    def _tell(self, waiters: set[Waiter], news: News) -> None:
        last = news.events[-1][0] if news.events else None
        for seq, future in waiters:
            if future.done() or (last is not None and seq >= last):
                continue
            if last is None or seq < news.events[0][0] - 1:
                future.set_result(LOOK)
            else:
                future.set_result(News([event for event in news.events if event[0] > seq], news.ended))

    def close(self) -> None:
        """Let everybody go: a stream that waits would hold up a shutdown."""
        self.closing = True
        for waiters in self._waiting.values():
            for _, future in waiters:
                if not future.done():
                    future.set_result(LOOK)


def as_sse(row: Event | Row[tuple[object, ...]]) -> bytes:
    event = views.event(row)  # type: ignore[arg-type]
    return format_sse_event(event=event.kind, id=str(event.seq), data_str=event.model_dump_json())
