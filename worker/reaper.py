"""Looks after what nobody looks after: lapsed leases, unheard rings, parents that wait, old answers.

Safe in every worker at once.
"""

import threading
import time

import structlog

from ledger import announcements, idempotency, lifecycle, parents, submissions, workers
from worker import telemetry
from worker.station import Station

TIDY_SECONDS = 600
log = structlog.get_logger()


def reap(station: Station) -> None:
    settings = station.settings
    workers.beat(station.db, station.worker_id)
    lifecycle.shorten_leases(station.db, settings.lease_seconds)
    expired = lifecycle.expire(station.db)
    parents.look_after(station.db)
    rung = station.doorbell.ring_again(station.db, 0 if expired else settings.ring_again_seconds)
    telemetry.leases_lapsed.inc(expired)
    if expired or rung:
        log.info("reaper.found", expired=expired, rung=rung)


def tidy(station: Station) -> None:
    settings = station.settings
    idempotency.forget(station.db, settings.idempotency_hours)
    submissions.forget(station.db, settings.submission_days, settings.idempotency_hours)
    if unheard := announcements.forget(station.db):
        log.warning("announcements.given_up", count=unheard)
    station.clear_away_the_dead()


def keep_reaping(station: Station) -> None:
    tidied_at = 0.0
    while not station.draining.wait(station.settings.reap_seconds):
        try:
            reap(station)
            if time.monotonic() - tidied_at > TIDY_SECONDS:
                tidied_at = time.monotonic()
                tidy(station)
        except Exception as error:
            log.warning("reaper.failed", error=str(error))
        station.turned_at = time.monotonic()


def start(station: Station) -> None:
    threading.Thread(target=keep_reaping, args=(station,), name="reaper", daemon=True).start()
