"""One Celery worker, one slot, one device."""

import threading
import warnings
from typing import Any

from celery import signals
from prometheus_client import REGISTRY

from ledger.logs import configure_logs
from ledger.metrics_port import open_metrics_port
from ledger.settings import load_settings
from worker import announcer, courier, door, mirror, reaper, sweeper, tasks, telemetry
from worker.app import app
from worker.station import is_well, open_station

COURIER_SECONDS = 5


def run() -> None:
    settings = load_settings()
    configure_logs(settings)
    telemetry.busy.labels(settings.queue).set(0)  # there from the first scrape on: workers are counted by it
    # Before the record hears of this worker: where the port is taken, there is none.
    open_metrics_port(settings, REGISTRY, is_well)
    station = open_station(settings)
    couriers: list[threading.Thread] = []
    opened: list[door.Door | None] = []

    @signals.worker_ready.connect(weak=False)
    def ready(**_: Any) -> None:
        station.parent.prepare()
        reaper.start(station)
        sweeper.start(station)
        if settings.courier:
            couriers.append(courier.start(station.db, settings, station.draining))
        announcer.start(station)
        opened.append(door.start(station))
        mirror.start(station)
        # What was queued while no worker was there to hear the ring.
        tasks.run.apply_async(args=(None,), queue=settings.queue)

    @signals.worker_shutting_down.connect(weak=False)
    def shutting_down(**_: Any) -> None:
        station.draining.set()

    @signals.worker_shutdown.connect(weak=False)
    def shut_down(**_: Any) -> None:
        for thread in couriers:
            thread.join(COURIER_SECONDS)  # it gives back what it carries
        for each in opened:
            if each is not None:
                each.close()
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
