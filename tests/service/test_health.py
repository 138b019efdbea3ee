import subprocess
import sys

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
