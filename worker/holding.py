"""Work with the store, for as long as it takes: gigabytes go up and down for longer than a lease lasts."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError

from ledger import jobs
from ledger.errors import StoreAway
from ledger.jobs import Reports
from ledger.lifecycle import Claim
from worker.station import Station

PAUSE_SECONDS = 1.0
WAITING = "the store of files does not answer: waiting for it"
Done = TypeVar("Done")
log = structlog.get_logger()


class ClaimLost(Exception):
    """Somebody else holds the job by now, or the lease has surely lapsed."""


class NoStore(Exception):
    """The store did not answer for as long as there was reason to wait; `reason` is why there was none any more."""

    def __init__(self, reason: str | None) -> None:
        super().__init__("the store of files does not answer")
        self.reason = reason


class Holding:
    """Renews the lease from a thread of its own, while the supervisor is busy with files."""

    def __init__(self, station: Station, claim: Claim, renewed_at: float) -> None:
        self.renewed_at = renewed_at
        self._station = station
        self._claim = claim
        self._done = threading.Event()
        self._notes: list[str] = []
        self._stop_reason: str | None = None
        self._lost = False
        self._thread = threading.Thread(target=self._hold_on, name="holding", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        if self._lost:
            raise ClaimLost

    def patiently(self, work: Callable[[], Done], patience_seconds: float) -> Done:
        """Again and again while store or database do not answer: they may be back in a moment."""
        until = time.monotonic() + patience_seconds
        noted = False
        while True:
            try:
                return work()
            except StoreAway as away:
                if not away.passes or time.monotonic() >= until or self._stop_reason or self._lost:
                    raise NoStore(self._stop_reason) from away
                if not noted:
                    noted = True
                    self._notes.append(WAITING)
            except DBAPIError as error:
                if time.monotonic() - self.renewed_at > self._station.settings.lease_seconds:
                    raise ClaimLost from error
            if self._station.draining.wait(PAUSE_SECONDS):
                raise NoStore("drain")

    def _hold_on(self) -> None:
        while not self._lost and not self._done.wait(self._station.settings.lease_seconds / 4):
            try:
                self._renew()
            except DBAPIError as error:
                log.warning("holding.database_away", job=self._claim.job_id, error=str(error.orig))

    def _renew(self) -> None:
        asked_at = time.monotonic()
        notes, self._notes = self._notes, []
        reports = Reports(entries=[("note", {"text": text}) for text in notes])
        pulse = jobs.record(self._station.db, self._claim, self._station.settings.lease_seconds, reports)
        if pulse is None:
            self._lost = True
            return
        self.renewed_at = asked_at
        self._stop_reason = "cancel" if pulse.cancel_requested else "deadline" if pulse.overdue else None
