"""A small port beside the work: Prometheus text and a sign of life, for whoever can reach it.

No key guards it, so it is off unless asked for, and on loopback unless told otherwise.
"""

import sys
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import structlog
from prometheus_client import CollectorRegistry, Gauge, make_wsgi_app

import flashcards
from ledger.settings import Settings

PLAIN = [("Content-Type", "text/plain; charset=utf-8")]
log = structlog.get_logger()
Gauge("flashcards_build_info", "1, with the version", ["version"]).labels(flashcards.__version__).set(1)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    timeout = 10  # seconds for a request to be sent: a client that says nothing holds a thread

    def log_message(self, *_: object) -> None:
        """A scrape every few seconds is no news."""


def open_metrics_port(settings: Settings, registry: CollectorRegistry, is_well: Callable[[], bool]) -> Server | None:
    if not settings.metrics_port:
        return None
    metrics = make_wsgi_app(registry)

    def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/metrics":
                figures: Iterable[bytes] = metrics(environ, start)
                return figures
            case "/healthz":
                well = is_well()
                start("200 OK" if well else "503 Service Unavailable", PLAIN)
                return [b"ok\n" if well else b"it hangs\n"]
        start("404 Not Found", PLAIN)
        return [b"there are /metrics and /healthz\n"]

    try:
        server = make_server(settings.metrics_host, settings.metrics_port, answer, Server, Quiet)
    except OSError as error:
        sys.exit(
            f"flashcards: cannot listen on {settings.metrics_host}:{settings.metrics_port} ({error.strerror}); "
            "FLASHCARDS_METRICS_PORT picks another port, and 0 none"
        )
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    log.info("metrics.listening", host=settings.metrics_host, port=settings.metrics_port)
    return server
