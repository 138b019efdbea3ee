"""Rings the worker's bell: a message with the job's id and nothing else. The job itself is in the ledger."""

import structlog
from celery import Celery
from sqlalchemy import select, update

from ledger.broker import celery_config
from ledger.clock import now
from ledger.db import Database
from ledger.settings import Settings
from ledger.tables import Job

TASK = "flashcards.run"
AT_ONCE = 100
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

    def ring_again(self, db: Database, after_seconds: float) -> int:
        """Ring for the oldest queued jobs whose ring was lost. A worker that is up goes on to the rest by itself."""
        unheard = (Job.rung_at.is_(None)) | (Job.rung_at < now() - after_seconds)
        with db.read() as session:
            statement = select(Job.id, Job.queue).where(Job.state == "queued", unheard).order_by(Job.id).limit(AT_ONCE)
            rows = session.execute(statement).all()
        for job_id, queue in rows:
            if self.ring(job_id, queue):
                with db.write() as session:
                    session.execute(update(Job).where(Job.id == job_id).values(rung_at=now()))
        return len(rows)

    def is_reachable(self) -> bool:
        try:
            with self._app.connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, timeout=2)
        except Exception:
            return False
        return True
