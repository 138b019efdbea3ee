"""Prometheus text. What the ledger knows is asked of it at the scrape; only requests are counted here."""

import shutil
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError
from starlette.types import Scope

from ledger import waiting, workers
from ledger.db import Database
from ledger.tables import Delivery, Job

KEPT_SECONDS = 2.0  # several scrapers, or an impatient one, ask the database once
METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
#: Up to the longest that a request may wait for a job, and an upload take.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

requests = Counter("flashcards_http_requests", "Requests answered", ["method", "route", "status"])
seconds = Histogram("flashcards_http_request_seconds", "Until the answer began", ["method", "route"], buckets=BUCKETS)


def observe(scope: Scope, status: int, elapsed: float) -> None:
    """By route, never by path: ids in labels would grow without end."""
    route = getattr(scope.get("route"), "path", "unmatched")
    method = scope["method"] if scope["method"] in METHODS else "other"
    requests.labels(method, route, str(status)).inc()
    seconds.labels(method, route).observe(elapsed)


class Kept(Collector):
    """What was found is good for a moment."""

    def __init__(self, look: Callable[[], list[Metric]]) -> None:
        self._look = look
        self._found: list[Metric] = []
        self._looked_at = float("-inf")
        self._lock = threading.Lock()

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            if time.monotonic() - self._looked_at > KEPT_SECONDS:
                self._found = self._look()
                self._looked_at = time.monotonic()
            return self._found


def of_ledger(db: Database) -> list[Metric]:
    """With the database away there is one figure left, which says so."""
    up = GaugeMetricFamily("flashcards_database_up", "1 while the database answers")
    try:
        found = [_jobs(db), _oldest(db), _workers(db), _deliveries(db)]
    except DBAPIError:
        found = []
    up.add_metric([], bool(found))
    return [up, *found]


def _jobs(db: Database) -> Metric:
    jobs = GaugeMetricFamily("flashcards_jobs", "Jobs by state and kind", labels=["state", "kind"])
    with db.read() as session:
        statement = select(Job.state, Job.kind, func.count()).group_by(Job.state, Job.kind)
        for state, kind, count in session.execute(statement):
            jobs.add_metric([state, kind], count)
    return jobs


def _oldest(db: Database) -> Metric:
    oldest = GaugeMetricFamily(
        "flashcards_oldest_queued_seconds", "How long the job waits that waits longest for a worker", labels=["queue"]
    )
    with db.read() as session:
        for queue, age in waiting.oldest(session).items():
            oldest.add_metric([queue], age)
    return oldest


def _workers(db: Database) -> Metric:
    alive = GaugeMetricFamily("flashcards_workers", "Workers that gave a sign of life", labels=["queue"])
    counted = workers.alive(db)
    for queue in waiting.QUEUES:
        alive.add_metric([queue], counted.get(queue, 0))
    return alive


def _deliveries(db: Database) -> Metric:
    deliveries = GaugeMetricFamily("flashcards_webhook_deliveries", "Deliveries on record, by state", labels=["state"])
    with db.read() as session:
        counted = select(Delivery.state, func.count()).group_by(Delivery.state)
        by_state = {row[0]: row[1] for row in session.execute(counted)}
    for state in ("pending", "delivered", "given_up"):
        deliveries.add_metric([state], by_state.get(state, 0))
    return deliveries


def of_disk(home: Path) -> list[Metric]:
    free = shutil.disk_usage(home).free
    return [GaugeMetricFamily("flashcards_disk_free_bytes", "Room where this API keeps its files", value=free)]


class Counted(Collector):
    """What this process has counted by itself."""

    def collect(self) -> Iterable[Metric]:
        return REGISTRY.collect()


def open_registry(db: Database, home: Path) -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (Counted(), Kept(lambda: of_ledger(db)), Kept(lambda: of_disk(home))):
        registry.register(collector)
    return registry
