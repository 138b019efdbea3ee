"""Traces: one trace id from the request through the queue to the runner.

A request's place in its caller's trace (a W3C traceparent) is kept with the job whether or not anybody exports spans,
so that the log lines of both sides name the trace. Spans are made where `flashcards[otel]` is installed and
OpenTelemetry's own environment names a collector; nothing of it is imported here otherwise.
"""

import os
import re
import socket
import threading
from typing import TYPE_CHECKING

import structlog

import flashcards

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
FLUSH_SECONDS = 2  # what is left at the end must not hold up a restart
TRACEPARENT = re.compile(r"((?!ff)[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
log = structlog.get_logger()


def accepted(header: str | None) -> str | None:
    """A caller's traceparent, if it is one. What it is in a later version than ours is not passed on."""
    found = TRACEPARENT.fullmatch(header or "")
    if found is None or (found[1] == "00" and found[5]):
        return None
    return f"00-{found[2]}-{found[3]}-{found[4]}"


def trace_id(place: str) -> str:
    return place.split("-")[1]


def traceparent(span: "Span") -> str:
    here = span.get_span_context()
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"


def is_wanted() -> bool:
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not off and os.environ.get("OTEL_TRACES_EXPORTER") != "none" and any(map(os.environ.get, ENDPOINTS))


def open_provider(part: str) -> "TracerProvider | None":
    """What makes and exports the spans of this process. A collector that is away costs spans, and nothing else."""
    if not is_wanted():
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("tracing.absent", fix="pip install 'flashcards[otel]'")
        return None
    about = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME") or f"flashcards-{part}",
        "service.version": flashcards.__version__,
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
    }
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def close_provider(provider: "TracerProvider | None") -> None:
    """The SDK itself waits for a collector that is away, whatever time it is given."""
    if provider is not None:
        last = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(FLUSH_SECONDS)
