"""Brings deliveries to their receivers: a thread beside a worker's reaper, or a process (`worker.post`).

Safe in any number of them at once. Each has a loop of its own: a receiver that takes its time costs a place there and
no thread, has few places of its own, and one that did not answer has a single one until it does again.
"""

import asyncio
import threading
import time
from collections import Counter

import structlog

from ledger import deliveries
from ledger.db import Database
from ledger.deliveries import Outcome, Parcel
from ledger.settings import Settings
from worker.sender import Sender

PLACES, PLACES_EACH = 100, 8
TIDY_SECONDS = 600
CLOSE_SECONDS = 2  # a worker that drains waits this long for tries that are under way
CLOSING = "its worker was closing"
log = structlog.get_logger()


class Courier:
    def __init__(self, db: Database, settings: Settings, closing: threading.Event) -> None:
        self._db = db
        self._settings = settings
        self._closing = closing
        self._sender = Sender(settings)
        self._under_way: dict[asyncio.Task[None], Parcel] = {}
        self._silent: set[str] = set()  # webhooks whose receiver did not answer the last time
        self._tidied_at = float("-inf")

    async def keep_delivering(self) -> None:
        while not self._closing.is_set():
            self._under_way = {task: parcel for task, parcel in self._under_way.items() if not task.done()}
            try:
                taken = await asyncio.to_thread(self._take)
                await asyncio.to_thread(self._tidy)
            except Exception as error:
                taken = []
                log.warning("courier.failed", error=str(error))
            for parcel in taken:
                self._under_way[asyncio.create_task(self._deliver(parcel))] = parcel
            if not taken:
                await self._rest()
        await self._close()

    def _take(self) -> list[Parcel]:
        """A share for every webhook that has something due, as far as there are places."""
        held = Counter(parcel.webhook.id for parcel in self._under_way.values())
        free = PLACES - held.total()
        if free <= 0:
            return []
        busy = [id for id, count in held.items() if count >= self._places(id)]
        taken: list[Parcel] = []
        for webhook_id in deliveries.waiting(self._db, busy, free):
            share = min(self._places(webhook_id) - held[webhook_id], free - len(taken))
            if share > 0:
                taken += deliveries.claim(self._db, webhook_id, share, self._lease_seconds)
        return taken

    def _places(self, webhook_id: str) -> int:
        return 1 if webhook_id in self._silent else PLACES_EACH

    @property
    def _lease_seconds(self) -> float:
        """The longest try, and time to write down how it went."""
        return self._settings.webhook_seconds + self._settings.lease_seconds / 3

    async def _deliver(self, parcel: Parcel) -> None:
        try:
            outcome = await self._sender.send(parcel)
            self._note(parcel, outcome)
            await asyncio.to_thread(self._finish, parcel, outcome)
        except Exception as error:  # the record is away: the lease runs out, and it is tried again
            log.warning("delivery.not_recorded", delivery=parcel.delivery.id, error=str(error))

    def _note(self, parcel: Parcel, outcome: Outcome) -> None:
        if outcome.status is None:
            self._silent.add(parcel.webhook.id)
        else:
            self._silent.discard(parcel.webhook.id)

    def _finish(self, parcel: Parcel, outcome: Outcome) -> None:
        state = deliveries.finish(self._db, parcel, outcome, self._settings.webhook_pauses)
        said = {"delivery": parcel.delivery.id, "webhook": parcel.webhook.id, "number": parcel.number}
        if state == "given_up":
            log.warning("delivery.given_up", reason=outcome.reason, **said)
        else:
            log.info("delivery.tried", state=state, status=outcome.status, reason=outcome.reason, **said)

    async def _rest(self) -> None:
        """Until something may be due, or until a place is free."""
        seconds = self._settings.webhook_poll_seconds
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(seconds)

    def _tidy(self) -> None:
        if time.monotonic() - self._tidied_at > TIDY_SECONDS:
            self._tidied_at = time.monotonic()
            deliveries.forget(self._db, self._settings.delivery_days)

    async def _close(self) -> None:
        if not self._under_way:
            return
        _, left = await asyncio.wait(self._under_way, timeout=CLOSE_SECONDS)
        for task in left:
            task.cancel()
        await asyncio.to_thread(deliveries.give_back, self._db, [self._under_way[task] for task in left], CLOSING)


def start(db: Database, settings: Settings, closing: threading.Event) -> threading.Thread:
    work = Courier(db, settings, closing).keep_delivering()
    thread = threading.Thread(target=asyncio.run, args=(work,), name="courier", daemon=True)
    thread.start()
    return thread
