"""A collector of traces: what OpenTelemetry's exporter sends over HTTP, as it arrives."""

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    service: str
    name: str
    trace: str
    id: str
    parent: str
    seconds: float
    about: dict[str, Any]
    failed: bool


class Collector:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                packed = self.headers.get("Content-Encoding") == "gzip"
                request = ExportTraceServiceRequest.FromString(gzip.decompress(body) if packed else body)
                collector.spans += list(_spans(request))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}

    def of_trace(self, trace: str, name: str, seconds: float = 30) -> dict[str, Span]:
        """Those of one trace by name, once the one of this name has arrived, which is the last to end."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = {span.name: span for span in list(self.spans) if span.trace == trace}
            if name in found:
                return found
            time.sleep(0.05)
        raise TimeoutError([(span.service, span.name, span.trace) for span in self.spans])


def _spans(request: Any) -> Iterator[Span]:
    for resource in request.resource_spans:
        service = _values(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    service=service,
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                    about=_values(span.attributes),
                    failed=span.status.code == 2,
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {entry.key: getattr(entry.value, entry.value.WhichOneof("value")) for entry in attributes}


@contextmanager
def running_collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        collector.server.server_close()
        thread.join()
