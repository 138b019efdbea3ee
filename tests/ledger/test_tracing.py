import sys
import time

import pytest

from ledger import tracing

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


def test_a_traceparent_is_taken_as_it_is():
    assert tracing.accepted(GOOD) == GOOD
    assert tracing.trace_id(GOOD) == TRACE


def test_of_a_later_version_what_we_know_is_taken():
    assert tracing.accepted(f"01-{TRACE}-{SPAN}-01-what-comes-later") == GOOD


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        GOOD.upper(),
        f"{GOOD}-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"{GOOD}\n",
        f"{GOOD}, {GOOD}",
    ],
)
def test_what_is_none_is_not_passed_on(header):
    assert tracing.accepted(header) is None


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_environment_says_whether_spans_are_wanted(monkeypatch, environment, wanted):
    for name in (*tracing.ENDPOINTS, "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tracing.is_wanted() is wanted


def test_a_collector_that_is_away_is_not_waited_for_long(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    provider = tracing.open_provider("worker")
    provider.get_tracer("test").start_span("lost").end()
    began = time.monotonic()
    tracing.close_provider(provider)
    assert time.monotonic() - began < tracing.FLUSH_SECONDS + 2  # by itself it would be ten and more


def test_without_the_extra_it_goes_on_and_says_so(monkeypatch, capsys):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert tracing.open_provider("api") is None
    said = capsys.readouterr()
    assert "flashcards[otel]" in said.out + said.err
