"""The queue as a door: takes in what producers send, whatever the worker's one slot is busy with.

A thread beside Celery's consumer and not a task of it: the slot may run one job for hours, and Celery would hand out
no further message meanwhile. Every worker has one; they share what comes.
"""

import threading
import time

import structlog
from redis.exceptions import RedisError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ledger import keys, submissions
from ledger.doorbell import Bell
from ledger.envelope import Unreadable, unfold
from ledger.inbox import Inbox, Taken, open_inbox
from ledger.keys import NoSecret
from worker.station import Station

WAIT_SECONDS = 1.0
AWAY_SECONDS = 1.0
LOOK_SECONDS = 5.0
CLOSE_SECONDS = 5.0
DATABASE_AWAY = (OperationalError, InterfaceError, PoolTimeout)
log = structlog.get_logger()


class Door:
    def __init__(self, station: Station, inbox: Inbox) -> None:
        self._station = station
        self._inbox = inbox
        self._bell = Bell(station.doorbell)
        self._looked_at = float("-inf")
        self._thread = threading.Thread(target=self.keep_open, name="door", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Once the worker drains. What is not taken in yet stays in the broker."""
        self._thread.join(CLOSE_SECONDS)
        self._bell.close()
        try:
            self._inbox.close()
        except (RedisError, OSError) as error:
            log.warning("door.broker_away", error=str(error))

    def keep_open(self) -> None:
        while not self._station.draining.is_set():
            try:
                self._take_one()
            except NoSecret as closed:
                self._wait("door.closed", closed, LOOK_SECONDS)
            except (RedisError, OSError) as error:
                self._wait("door.broker_away", error)
            except DATABASE_AWAY as error:
                self._wait("door.database_away", error)
            except Exception as error:
                log.error("door.defect", exc_info=error)
                self._station.draining.wait(AWAY_SECONDS)

    def _take_one(self) -> None:
        keyring = keys.keyring_to_read(self._station.settings, self._station.db)
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._looked_at = time.monotonic()
            if found := self._inbox.put_back_lost():
                log.info("door.put_back", messages=found)
        taken = self._inbox.take(WAIT_SECONDS)
        if taken is not None:
            self._take_in(taken, keyring)

    def _take_in(self, taken: Taken, keyring: keys.Keyring | None) -> None:
        """Let go of after the commit: whoever dies before leaves the message to another."""
        station = self._station
        try:
            letter = unfold(taken.raw, station.settings.max_body_bytes)
            receipt = submissions.receive(station.db, station.settings, keyring, letter)
        except Unreadable as why:
            log.warning("submission.set_aside", reason=str(why), bytes=len(taken.raw))
            self._inbox.set_aside(taken)
            return
        except DATABASE_AWAY:
            raise
        except Exception as error:
            # Whatever is wrong with it would be so again: it must not come back for ever.
            log.error("submission.set_aside", bytes=len(taken.raw), exc_info=error)
            self._inbox.set_aside(taken)
            return
        self._inbox.done(taken)
        for ring in receipt.rings:
            self._bell.ring(*ring)
        said = "submission.accepted" if receipt.problem is None else "submission.rejected"
        log.info(said, id=receipt.key, job=receipt.job_id, problem=receipt.problem and receipt.problem.detail)

    def _wait(self, what: str, error: Exception, seconds: float = AWAY_SECONDS) -> None:
        log.warning(what, error=str(getattr(error, "orig", error)))
        self._looked_at = float("-inf")  # the message that was being read is put back first
        self._station.draining.wait(seconds)


def start(station: Station) -> Door | None:
    inbox = open_inbox(station.settings, station.worker_id)
    if inbox is None:
        log.warning("door.unknown_broker", known="Redis and the embedded one")
        return None
    door = Door(station, inbox)
    door.start()
    return door
