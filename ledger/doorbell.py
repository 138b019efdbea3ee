"""Rings the worker's bell: a message with the job's id and nothing else. The job itself is in the ledger."""

import threading
import time
from typing import Any

import structlog
from celery import Celery
from sqlalchemy import func, select, update

from ledger import turns, workers
from ledger.broker import celery_config
from ledger.clock import now
from ledger.db import Database
from ledger.settings import Settings
from ledger.tables import Job

TASK = "flashcards.run"
ANNOUNCE = "flashcards.announce"
log = structlog.get_logger()


class Doorbell:
    def __init__(self, settings: Settings) -> None:
        self._app = Celery("flashcards.doorbell", set_as_current=False)
        self._app.conf.update(celery_config(settings))

    def ring(self, job_id: str, queue: str) -> bool:
        """Never raises: an unheard ring is rung again by the reaper."""
        try:
            self._app.send_task(TASK, args=[job_id], queue=queue)
        except Exception as error:
            log.warning("doorbell.unheard", job=job_id, error=str(error))
            return False
        return True

    def announce(self, queue: str, id: str, body: dict[str, Any]) -> None:
        """To a queue of somebody else. Raises whatever the broker raises."""
        self._app.send_task(ANNOUNCE, kwargs=body, task_id=id, queue=queue)

    def ring_again(self, db: Database, after_seconds: float) -> int:
        """Ring for jobs whose ring was lost, one for each idle worker: once up, it goes on to the rest itself."""
        rung = 0
        for queue, idle in workers.idle(db).items():
            for job_id in _unheard(db, queue, after_seconds, idle):
                rung += self.ring(job_id, queue)
        return rung

    def is_reachable(self) -> bool:
        try:
            with self._app.connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, timeout=2)
        except Exception as error:
            log.warning("broker.unreachable", error=str(error))
            return False
        return True


class Bell:
    """Rings from a thread of its own, so that who queues a job does not wait for the broker.

    A burst of rings for one queue is cut short: whoever hears the first few goes on to the rest by itself.
    """

    AT_ONCE = 4
    PAUSE_SECONDS = 0.05

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell
        self._pending: dict[str, list[str]] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._keep_ringing, name="bell", daemon=True)
        self._thread.start()

    def ring(self, job_id: str, queue: str) -> None:
        with self._changed:
            waiting = self._pending.setdefault(queue, [])
            if len(waiting) < self.AT_ONCE:
                waiting.append(job_id)
                self._changed.notify()

    def is_reachable(self) -> bool:
        return self._doorbell.is_reachable()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout=5)

    def _keep_ringing(self) -> None:
        while not self._closing or self._pending:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                pending, self._pending = self._pending, {}
            for queue, job_ids in pending.items():
                for job_id in job_ids:
                    self._doorbell.ring(job_id, queue)
            time.sleep(self.PAUSE_SECONDS)


def _unheard(db: Database, queue: str, after_seconds: float, limit: int) -> list[str]:
    """The oldest few, marked as rung from now on."""
    with db.write() as session:
        ready = (Job.state == "queued", Job.queue == queue, turns.is_its_turn())
        oldest = select(Job.id).where(*ready).order_by(Job.id).limit(limit)
        # Either way: a ring from the future was rung before the clock was put back.
        stale = (Job.rung_at.is_(None)) | (func.abs(now() - Job.rung_at) > after_seconds)
        marked = update(Job).where(Job.id.in_(oldest.scalar_subquery()), stale).values(rung_at=now())
        return list(session.scalars(marked.returning(Job.id).execution_options(synchronize_session=False)))
