"""Waiting for jobs: one poller a process asks the ledger once a tick for every job that anybody watches."""

import asyncio
from collections import defaultdict
from contextlib import suppress

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from ledger.db import Database
from ledger.tables import Job

AT_ONCE = 500


class Watch:
    def __init__(self, db: Database, tick_seconds: float) -> None:
        self._db = db
        self._tick = tick_seconds
        self._waiting: dict[str, set[tuple[int, asyncio.Future[None]]]] = defaultdict(set)
        self._poller: asyncio.Task[None] | None = None
        self.closing = False

    async def changed(self, job_id: str, seq: int, timeout: float) -> bool:
        """True once the job has events after `seq`, or is gone, or the service closes; False when the time is up."""
        if self.closing:
            return True
        future = asyncio.get_running_loop().create_future()
        waiter = (seq, future)
        self._waiting[job_id].add(waiter)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            await asyncio.wait_for(future, timeout)
            return True
        except TimeoutError:
            return False
        finally:
            self._waiting[job_id].discard(waiter)
            if not self._waiting[job_id]:
                del self._waiting[job_id]

    async def _poll(self) -> None:
        while self._waiting and not self.closing:
            ids = list(self._waiting)
            with suppress(DBAPIError):  # away for a moment; the next tick asks again
                latest = await asyncio.to_thread(self._latest, ids)
                self._wake(ids, latest)
            await asyncio.sleep(self._tick)

    def _latest(self, ids: list[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._db.read() as session:
            for start in range(0, len(ids), AT_ONCE):
                statement = select(Job.id, Job.seq).where(Job.id.in_(ids[start : start + AT_ONCE]))
                found.update((row[0], row[1]) for row in session.execute(statement))
        return found

    def _wake(self, ids: list[str], latest: dict[str, int]) -> None:
        for job_id in ids:
            for seq, future in self._waiting.get(job_id, set()):
                if not future.done() and latest.get(job_id, seq + 1) > seq:
                    future.set_result(None)

    def close(self) -> None:
        """Let everybody go: a stream that waits would hold up a shutdown."""
        self.closing = True
        for waiters in self._waiting.values():
            for _, future in waiters:
                if not future.done():
                    future.set_result(None)
