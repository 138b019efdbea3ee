"""The spans of one attempt: how long its job was queued, the attempt itself, and its stages.

A runner has no address to send spans to: it tells its stages over the pipe, and they become spans here.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from ledger.lifecycle import Claim
from ledger.tracing import trace_id, traceparent
from worker.messages import SaidStage

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


class Spans:
    """Where nobody traces: nothing happens, and nothing is imported."""

    are_wanted = False

    def __init__(self, claim: Claim) -> None:
        self._caller = claim.caller
        self.place = claim.caller.trace

    def ids(self) -> dict[str, str]:
        """What a line of the attempt has in common with those of the request that asked for the job."""
        trace = None if self.place is None else trace_id(self.place)
        found = {"request": self._caller.request_id, "trace": trace}
        return {name: value for name, value in found.items() if value is not None}

    def stage(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()

    def heard(self, stage: SaidStage) -> None: ...

    def end(self, outcome: str) -> None: ...


class TracedSpans(Spans):
    are_wanted = True

    def __init__(self, provider: "TracerProvider", claim: Claim, queue: str) -> None:
        super().__init__(claim)
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._under = trace.set_span_in_context
        self._tracer = provider.get_tracer("flashcards.worker")
        asked = TraceContextTextMapPropagator().extract({"traceparent": claim.caller.trace or ""})
        about = {
            "flashcards.job": claim.job_id,
            "flashcards.kind": claim.spec["kind"],
            "flashcards.queue": queue,
            "flashcards.attempt": claim.attempt,
        }
        now = time.time()
        began = _nanoseconds(now - claim.waited_seconds)
        queued = self._tracer.start_span("job queued", asked, trace.SpanKind.PRODUCER, about, start_time=began)
        queued.end(_nanoseconds(now))
        # Of another job of the trace it is told apart by its kind; ids in names would make every span another one.
        name = f"attempt {claim.spec['kind']}"
        self._span = self._tracer.start_span(name, self._under(queued), trace.SpanKind.CONSUMER, about)
        self._current = self._span
        self.place = traceparent(self._span)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        above = self._current
        span = self._current = self._tracer.start_span(name, self._under(above))
        try:
            yield
        finally:
            span.end()
            self._current = above

    def heard(self, stage: SaidStage) -> None:
        began, ended = _nanoseconds(stage.began_at), _nanoseconds(stage.ended_at)
        self._tracer.start_span(stage.name, self._under(self._current), start_time=began).end(ended)

    def end(self, outcome: str) -> None:
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("flashcards.outcome", outcome)
        if outcome not in ("succeeded", "cancelled", "released"):
            self._span.set_status(StatusCode.ERROR, outcome)
        self._span.end()


def spans_of(provider: "TracerProvider | None", claim: Claim, queue: str) -> Spans:
    return Spans(claim) if provider is None else TracedSpans(provider, claim, queue)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
