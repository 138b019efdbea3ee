"""Prometheus text. What the ledger knows is asked of it at the scrape; only requests are counted here."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from starlette.types import Scope

from ledger import workers
from ledger.clock import now
from ledger.db import Database
from ledger.tables import Job

requests = Counter("flashcards_http_requests", "Requests answered", ["method", "route", "status"])
seconds = Histogram("flashcards_http_request_seconds", "Time to answer", ["method", "route"])


def observe(scope: Scope, status: int, elapsed: float) -> None:
    """By route, never by path: ids in labels would grow without end."""
    route = getattr(scope.get("route"), "path", "unmatched")
    requests.labels(scope["method"], route, str(status)).inc()
    seconds.labels(scope["method"], route).observe(elapsed)


class LedgerCollector(Collector):
    def __init__(self, db: Database) -> None:
        self._db = db

    def collect(self) -> Iterable[Metric]:
        jobs = GaugeMetricFamily("flashcards_jobs", "Jobs by state and kind", labels=["state", "kind"])
        waiting = GaugeMetricFamily(
            "flashcards_oldest_queued_seconds", "Age of the oldest queued job", labels=["queue"]
        )
        alive = GaugeMetricFamily("flashcards_workers", "Workers that gave a sign of life", labels=["queue"])
        with self._db.read() as session:
            for state, kind, count in session.execute(
                select(Job.state, Job.kind, func.count()).group_by(Job.state, Job.kind)
            ):
                jobs.add_metric([state, kind], count)
            for queue, age in session.execute(
                select(Job.queue, now() - func.min(Job.created_at)).where(Job.state == "queued").group_by(Job.queue)
            ):
                waiting.add_metric([queue], age)
        for queue, count in workers.alive(self._db).items():
            alive.add_metric([queue], count)
        return [jobs, waiting, alive]


class DiskCollector(Collector):
    def __init__(self, home: Path) -> None:
        self._home = home

    def collect(self) -> Iterable[Metric]:
        free = shutil.disk_usage(self._home).free
        yield GaugeMetricFamily("flashcards_disk_free_bytes", "Room where this API keeps its files", value=free)


def scrape(db: Database, home: Path) -> bytes:
    ledger = CollectorRegistry()
    ledger.register(LedgerCollector(db))
    ledger.register(DiskCollector(home))
    return generate_latest(REGISTRY) + generate_latest(ledger)
