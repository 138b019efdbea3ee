"""One Celery worker, one slot, one device."""

import warnings
from typing import Any

from celery import signals

from ledger.logs import configure_logs
from ledger.settings import load_settings
from worker import reaper, sweeper, tasks
from worker.app import app
from worker.station import open_station


def run() -> None:
    settings = load_settings()
    configure_logs(settings)
    station = open_station(settings)

    @signals.worker_ready.connect(weak=False)
    def ready(**_: Any) -> None:
        station.parent.prepare()
        reaper.start(station)
        sweeper.start(station)
        # What was queued while no worker was there to hear the ring.
        tasks.run.apply_async(args=(None,), queue=settings.queue)

    @signals.worker_shutting_down.connect(weak=False)
    def shutting_down(**_: Any) -> None:
        station.draining.set()

    @signals.worker_shutdown.connect(weak=False)
    def shut_down(**_: Any) -> None:
        station.close()

    # Celery warns of root because pickle would run as root; only JSON is accepted here.
    warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")
    # Threads, because a prefork child is never told of SIGTERM, and the work is in a process of its own anyway.
    app.worker_main(
        [
            "--quiet",
            "worker",
            "--pool=threads",
            "--concurrency=1",
            f"--queues={settings.queue}",
            "--loglevel=WARNING",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )
