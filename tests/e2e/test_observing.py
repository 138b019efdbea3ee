"""What a service tells those who watch it: figures of both sides, one trace from the request to the runner, log lines
that name the same ids."""

import json
import subprocess
import sys
import time
from secrets import token_hex

import httpx
import pytest
from making import finished, push_dataset, push_model, submit, wait_for
from prometheus_client.parser import text_string_to_metric_families
from service_process import ServiceProcess, free_port, running_service

CPU = (("queue", "cpu"),)


@pytest.fixture(scope="module")
def client(watched):
    with httpx.Client(base_url=watched.url, timeout=60) as client:
        yield client


def scrape(url: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """By name of the sample, then by its labels."""
    answer = httpx.get(f"{url}/metrics", timeout=30)
    assert answer.status_code == 200
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def worker_url(watched: ServiceProcess) -> str:
    return f"http://127.0.0.1:{watched.environment['FLASHCARDS_METRICS_PORT']}"


def lines_of(watched: ServiceProcess) -> list[dict]:
    return [json.loads(line.split("| ", 1)[1]) for line in watched.log.read_text().splitlines() if "| {" in line]


def test_one_trace_leads_from_the_request_to_the_runner(watched, client, collector):
    trace, parent = token_hex(16), token_hex(8)
    spec = {"kind": "capture", "model": push_model(client)["id"], "count": 8, "r": 2}
    headers = {"traceparent": f"00-{trace}-{parent}-01"}
    asked = client.post("/v1/jobs", params={"validate_only": False}, json=spec, headers=headers)
    job = wait_for(client, asked.json()["id"])
    assert job["state"] == "succeeded", job

    spans = collector.of_trace(trace, "attempt capture")
    request, queued, attempt = (spans[name] for name in ("POST /v1/jobs", "job queued", "attempt capture"))
    assert (request.service, request.parent) == ("flashcards-api", parent)
    assert request.about["url.query"] == "REDACTED"
    assert (queued.service, queued.parent) == ("flashcards-worker", request.id)
    assert attempt.parent == queued.id
    assert attempt.about["flashcards.job"] == job["id"]
    assert (attempt.about["flashcards.attempt"], attempt.about["flashcards.outcome"]) == (1, "succeeded")
    assert not attempt.failed
    for stage in ("stage inputs", "run", "keep files", "settle"):
        assert spans[stage].parent == attempt.id, stage
    for stage in ("load", "cards", "write"):
        assert spans[stage].parent == spans["run"].id, stage
        assert 0 <= spans[stage].seconds <= spans["run"].seconds, stage

    lines = [line for line in lines_of(watched) if line.get("trace") == trace]
    assert {line["request"] for line in lines} == {asked.headers["x-request-id"]}
    assert {line["job"] for line in lines} == {job["id"]}
    assert {"request.answered", "attempt.started", "attempt.ended"} <= {line["event"] for line in lines}
    assert all(line["attempt"] == 1 for line in lines if line["event"].startswith("attempt."))


def test_a_job_that_fails_fails_its_attempt(client, collector):
    trace = token_hex(16)
    headers = {"traceparent": f"00-{trace}-{token_hex(8)}-01"}
    spec = {"kind": "capture", "model": push_model(client)["id"], "count": 20_000, "r": 50, "timeout_seconds": 1}
    job = client.post("/v1/jobs", json=spec, headers=headers).json()
    assert wait_for(client, job["id"])["state"] == "failed"
    attempt = collector.of_trace(trace, "attempt capture")["attempt capture"]
    assert attempt.failed
    assert attempt.about["flashcards.outcome"] == "failed"


@pytest.mark.parametrize("header", ["00-" + "0" * 32 + "-" + "1" * 16 + "-01", "nonsense", "ff-" + "1" * 32, ""])
def test_a_traceparent_that_is_none_begins_a_trace_of_our_own(client, collector, header):
    answer = client.post("/v1/jobs", json={"kind": "noop"}, headers={"traceparent": header})
    assert answer.status_code == 202
    wait_for(client, answer.json()["id"])
    deadline = time.monotonic() + 30
    while not (mine := [s for s in list(collector.spans) if s.about.get("flashcards.job") == answer.json()["id"]]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len({span.trace for span in mine}) == 1
    assert mine[0].trace not in header


def test_probes_and_scrapes_make_no_spans(client, collector):
    for path in ("/healthz", "/readyz", "/metrics"):
        client.get(path)
    finished(client, kind="noop")
    assert not [span.name for span in collector.spans if span.about.get("url.path") in ("/healthz", "/readyz")]
    assert not [span.name for span in collector.spans if span.about.get("url.path") == "/metrics"]


def test_the_worker_tells_of_the_job_that_runs_and_forgets_it(watched, client, digits_npz):
    dataset = push_dataset(client, digits_npz)
    job = submit(client, kind="train", architecture="blk_2_fil_8", dataset=dataset["id"], epochs=200, patience=200)
    loss = (("kind", "train"),)
    deadline = time.monotonic() + 90
    while loss not in (figures := scrape(worker_url(watched))).get("flashcards_running_loss", {}):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert figures["flashcards_worker_busy"][CPU] == 1
    assert 0 < figures["flashcards_running_loss"][loss] < 1
    assert figures["flashcards_samples_per_second"][()] > 0
    assert figures["flashcards_cards_per_second"][()] == 0
    time.sleep(2.1)  # what the API found in the record is good for two seconds
    assert scrape(watched.url)["flashcards_jobs"][("kind", "train"), ("state", "running")] == 1
    client.post(f"/v1/jobs/{job['id']}/cancel")
    assert wait_for(client, job["id"])["state"] == "cancelled"
    while (figures := scrape(worker_url(watched)))["flashcards_worker_busy"][CPU]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert loss not in figures.get("flashcards_running_loss", {})
    assert figures["flashcards_samples_per_second"][()] == 0
    assert figures["flashcards_attempts_total"][("kind", "train"), ("outcome", "cancelled")] >= 1


def test_cards_and_waits_are_counted(watched, client):
    model = push_model(client)["id"]
    before = scrape(worker_url(watched))
    finished(client, kind="capture", model=model, count=70, r=1)
    after = scrape(worker_url(watched))
    assert after["flashcards_cards_total"][()] - before["flashcards_cards_total"][()] == 70
    waits = "flashcards_queue_wait_seconds_count"
    assert after[waits][CPU] - before[waits][CPU] == 1


def test_the_workers_port_answers_with_its_health_and_nothing_else(watched):
    url = worker_url(watched)
    assert httpx.get(f"{url}/healthz").text == "ok\n"
    assert httpx.get(f"{url}/v1/jobs").status_code == 404
    assert "job_" not in httpx.get(f"{url}/metrics").text


def test_a_port_that_is_taken_is_said(watched, tmp_path):
    environment = {**watched.environment, "FLASHCARDS_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "worker"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "FLASHCARDS_METRICS_PORT picks another port" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_collector_that_is_away_holds_nothing_up(tmp_path):
    away = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}", "OTEL_BSP_SCHEDULE_DELAY": "100"}
    with running_service(tmp_path / "home", environment=away, threads=1) as service:
        with httpx.Client(base_url=service.url, timeout=60) as client:
            finished(client, kind="noop")
        assert service.stop() == 0
        assert "was killed" not in service.log.read_text()  # it went by itself: nobody waits for spans to be taken


def test_without_a_collector_nothing_of_it_is_imported():
    code = (
        "import sys, service.server, worker.process; from service.app import create_app\n"
        "from ledger.settings import Settings; create_app(Settings())\n"
        "left = ('opentelemetry.sdk.trace', 'opentelemetry.exporter')\n"
        "sys.exit(', '.join(name for name in sys.modules if name.startswith(left)) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.stderr.strip(), ran.returncode) == ("", 0)
