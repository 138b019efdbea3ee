"""Spans of requests, made by FastAPI itself, and the place of a request in its trace."""

from typing import TYPE_CHECKING

from fastapi.telemetry import TelemetryConfig
from starlette.datastructures import Headers
from starlette.types import Scope

from ledger import tracing
from service.auth import is_open

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider

OFF: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def config(provider: "TracerProvider | None") -> TelemetryConfig:
    """Whatever else is installed: no spans but ours, and no second way for figures and logs."""
    if provider is None:
        return OFF
    provider.add_span_processor(_without_queries())
    return {**OFF, "tracing": True, "tracer_provider": provider, "operation_spans": False, "exclude": is_left_out}


def is_left_out(scope: Scope) -> bool:
    """Probes, scrapes and the frames of the page: many, and all alike."""
    return is_open(scope["path"]) or scope["path"] == "/metrics"


def place(scope: Scope) -> str | None:
    """As a traceparent: that of the span, or what the caller sent."""
    told = scope.get("fastapi.telemetry")
    if told is not None and told.span is not None:
        return tracing.traceparent(told.span)
    return tracing.accepted(Headers(scope=scope).get("traceparent"))


def _without_queries() -> "SpanProcessor":
    from opentelemetry.sdk.trace import SpanProcessor

    class WithoutQueries(SpanProcessor):
        """A query may hold what a user calls things, which is for no log and no collector."""

        def on_start(self, span: "Span", parent_context: "Context | None" = None) -> None:
            if "url.query" in (span.attributes or {}):
                span.set_attribute("url.query", "REDACTED")

    return WithoutQueries()
