"""Looks after files: data that is not to be kept, old resume points and uploads, blobs nobody needs.

Safe in every worker at once.

A thread beside the reaper's, because a store may take its time, and a worker that gives no sign of life counts as dead.
"""

import threading
import time

import structlog

from ledger import retention, uploads
from ledger.collector import Collector, adopt_strays
from worker.station import Station

STRAYS_SECONDS = 6 * 3600
log = structlog.get_logger()


class Sweeper:
    def __init__(self, station: Station) -> None:
        self._station = station
        self._collector = Collector(station.db, station.store, station.settings.collect_grace_seconds)
        self._collected_at = self._looked_for_strays_at = float("-inf")

    def sweep(self) -> None:
        db, store, settings = self._station.db, self._station.store, self._station.settings
        retention.sweep(db, store)
        started = time.monotonic()
        if started - self._collected_at < settings.collect_seconds:
            return
        self._collected_at = started
        retention.forget_resume_points(db, settings.resume_point_days)
        uploads.forget(db, store)
        if started - self._looked_for_strays_at > STRAYS_SECONDS:
            self._looked_for_strays_at = started
            adopt_strays(db, store, settings.collect_grace_seconds)
        self._collector.collect()


def keep_sweeping(station: Station) -> None:
    sweeper = Sweeper(station)
    while not station.draining.wait(station.settings.reap_seconds):
        try:
            sweeper.sweep()
        except Exception as error:
            log.warning("sweeper.failed", error=str(error))


def start(station: Station) -> None:
    threading.Thread(target=keep_sweeping, args=(station,), name="sweeper", daemon=True).start()
