import subprocess
import sys
import time

import httpx
from making import finished


def test_ready_means_every_part_is(api):
    assert api.get("/healthz").json() == {"status": "ok"}
    assert api.get("/readyz").json() == {
        "ready": True,
        "checks": {"database": True, "broker": True, "store": True, "worker": True},
        "workers": {"cpu": 1},
    }


def test_metrics_speak_of_jobs_workers_and_requests(api, model):
    finished(api, kind="capture", model=model["id"], count=1, r=1)
    text = api.get("/metrics").text
    assert 'flashcards_jobs{kind="capture",state="succeeded"}' in text
    assert 'flashcards_workers{queue="cpu"} 1.0' in text
    assert 'flashcards_http_requests_total{method="GET",route="/v1/jobs/{job_id}",status="200"}' in text
    assert "job_0" not in text


def test_there_is_no_torch_in_the_api_or_the_queue_side(service):
    """Neither imported by the code nor mapped into the processes that run."""
    code = "import sys, service.server, service.serve, worker.process; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
    for module in ("service.api", "worker"):
        maps = {mapped.path for mapped in service.part(module).memory_maps()}
        assert maps
        assert not [path for path in maps if "torch" in path]


def test_an_idle_api_is_small(tmp_path):
    """The gate: under 150 MB."""
    from service_process import running_service

    with running_service(tmp_path / "home") as fresh:
        assert fresh.part("service.api").memory_info().rss < 150e6


def test_a_connection_that_rests_is_not_closed_under_its_client(service):
    """A server that closes it as soon as clients do (httpx, and uvicorn by itself: 5 s) loses what is just sent."""
    with httpx.Client(base_url=service.url, limits=httpx.Limits(max_connections=1, keepalive_expiry=60)) as patient:
        ports = {port_of(patient.get("/healthz"))}
        time.sleep(6)
        ports.add(port_of(patient.get("/healthz")))
    assert len(ports) == 1


def port_of(answer: httpx.Response) -> int:
    """Ours: another one means another connection."""
    return answer.extensions["network_stream"].get_extra_info("client_addr")[1]
