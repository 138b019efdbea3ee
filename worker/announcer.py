"""Says on callers' queues what is to be said there. Safe in every worker at once."""

import threading

import structlog

from ledger import announcements
from ledger.announcements import AT_ONCE, Due
from worker.station import Station

PAUSE_SECONDS = 0.5
AWAY_SECONDS = 5.0
log = structlog.get_logger()


def announce(station: Station) -> int:
    """A few, oldest first; how many there were."""
    due = announcements.take(station.db)
    said = [each.id for each in due if _say(station, each)]
    unsaid = [each.id for each in due if each.id not in said]
    if said:
        announcements.said(station.db, said)
    if unsaid:
        announcements.put_off(station.db, unsaid)
    return len(due)


def keep_announcing(station: Station) -> None:
    pause = PAUSE_SECONDS
    while not station.draining.wait(pause):
        try:
            pause = 0 if announce(station) == AT_ONCE else PAUSE_SECONDS
        except Exception as error:
            log.warning("announcer.failed", error=str(error))
            pause = AWAY_SECONDS


def start(station: Station) -> None:
    threading.Thread(target=keep_announcing, args=(station,), name="announcer", daemon=True).start()


def _say(station: Station, due: Due) -> bool:
    try:
        station.doorbell.announce(due.queue, due.id, due.body)
    except Exception as error:
        log.warning("announcement.unheard", id=due.id, queue=due.queue, error=str(error))
        return False
    return True
