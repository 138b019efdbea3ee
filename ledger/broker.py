"""The embedded broker: Celery messages as files in a folder, for a service without Redis.

kombu's filesystem transport, hardened. A message is written under a temporary name and renamed, so no reader sees half
of one (kombu#1551: an empty file kills the stock consumer); a corrupt one is set aside and skipped; names start with
the wall clock, so order survives a reboot; each queue has its own folder, so a long queue does not slow a short one.
A lost message costs nothing: the ledger rings again.
"""

import os
import time
from pathlib import Path
from queue import Empty
from typing import Any

import structlog
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps, loads
from uuid_utils import uuid4

from ledger.settings import Settings

SCHEME = "embedded"
STOP_SECONDS = 0.25
log = structlog.get_logger()


class Channel(filesystem.Channel):
    def _folder(self, queue: str) -> Path:
        folder = Path(self.transport_options["folder"]) / queue
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _queue_bind(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to keep: every routing key is the name of its queue."""

    def get_table(self, exchange: str) -> list[Any]:
        return []

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> list[str]:
        return [routing_key]

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        name = f"{time.time_ns():020d}-{uuid4().hex}.msg"
        folder = self._folder(queue)
        draft = folder / f".{name}.tmp"
        draft.write_text(dumps(payload))
        draft.rename(folder / name)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder = self._folder(queue)
        for name in self._names(folder):
            taken = folder / f".{name}.taken"
            try:
                (folder / name).rename(taken)  # of several readers one wins
            except FileNotFoundError:
                continue
            try:
                message = loads(taken.read_bytes())
                taken.unlink()
            except (ValueError, UnicodeDecodeError):
                taken.rename(folder / f".{name}.corrupt")
                log.warning("broker.corrupt_message", queue=queue, name=name)
                continue
            return message
        raise Empty()

    def _names(self, folder: Path) -> list[str]:
        return sorted(name for name in os.listdir(folder) if name.endswith(".msg") and not name.startswith("."))

    def _size(self, queue: str) -> int:
        return len(self._names(self._folder(queue)))

    def _purge(self, queue: str) -> int:
        folder = self._folder(queue)
        names = self._names(folder)
        for name in names:
            (folder / name).unlink(missing_ok=True)
        return len(names)

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        return True

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        self._purge(queue)


class Transport(filesystem.Transport):
    Channel = Channel
    driver_name = SCHEME

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:  # type: ignore[override]
        """Celery looks at its stop flag between two of these, and would wait two seconds for nothing."""
        super().drain_events(connection, timeout=min(timeout or STOP_SECONDS, STOP_SECONDS))


TRANSPORT_ALIASES[SCHEME] = "ledger.broker:Transport"


def celery_config(settings: Settings) -> dict[str, Any]:
    """One configuration for those who ring and those who listen."""
    config: dict[str, Any] = {
        "broker_url": settings.broker,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        # Acked before the work: a lease in the ledger, not the broker, says whether a job is lost (celery#5935).
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "broker_connection_retry_on_startup": True,
        "task_default_queue": "cpu",
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0, "interval_max": 0.1},
    }
    if settings.broker.startswith(SCHEME):
        config["broker_transport_options"] = {
            "folder": str(settings.broker_folder),
            "polling_interval": settings.broker_poll_seconds,
        }
    return config
