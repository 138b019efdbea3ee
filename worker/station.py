"""What one worker process has: its name, record and store, a parent for runners, a flag that says it is closing."""

import os
import shutil
import threading
import time

from ledger import lifecycle, tracing, workers
from ledger.db import Database
from ledger.doorbell import Doorbell
from ledger.lifecycle import Claim
from ledger.schema import ensure_schema
from ledger.settings import Settings
from ledger.store import Store
from worker.child import Parent

HANGS_SECONDS = 300  # longer than any statement or connection is waited for


class Station:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.db = Database(settings.database)
        ensure_schema(self.db)
        self.store = Store(settings.store)
        self.doorbell = Doorbell(settings)
        self.parent = Parent()
        self.draining = threading.Event()
        self.provider = tracing.open_provider("worker")
        self.turned_at = time.monotonic()  # when the reaper last came round
        self.worker_id = workers.register(self.db, settings.queue)
        self.folder = settings.work_folder / self.worker_id
        self.folder.mkdir(parents=True)
        self.clear_away_the_dead()

    @property
    def device(self) -> str:
        return "cuda" if self.settings.queue == "gpu" else "cpu"

    @property
    def threads(self) -> int:
        return self.settings.threads or os.cpu_count() or 1

    def claim(self, job_id: str | None) -> Claim | None:
        settings = self.settings
        return lifecycle.claim(self.db, settings.queue, self.worker_id, settings.lease_seconds, job_id)

    def is_well(self) -> bool:
        """It moves, whether or not the database answers: who starts it again would not help the database."""
        return time.monotonic() - self.turned_at < HANGS_SECONDS + self.settings.reap_seconds

    def close(self) -> None:
        self.parent.close()
        workers.leave(self.db, self.worker_id)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.db.close()
        tracing.close_provider(self.provider)

    def clear_away_the_dead(self) -> None:
        """Attempt folders lie in their worker's; those of dead ones are rubbish, and may hold somebody's data."""
        living = workers.living(self.db, self.worker_id)
        for folder in self.settings.work_folder.iterdir():
            if folder.name not in living:
                shutil.rmtree(folder, ignore_errors=True)


_station: Station | None = None


def open_station(settings: Settings) -> Station:
    global _station
    _station = Station(settings)
    return _station


def station() -> Station:
    if _station is None:
        raise RuntimeError("start workers with `python -m worker`")
    return _station


def is_well() -> bool:
    return _station is not None and _station.is_well()
