"""SIGTERM to an API: what it has begun is answered, who waits is let go, and it ends by itself."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest
from making import submit
from service_process import ServiceProcess

ENDED = (0, -signal.SIGTERM)  # uvicorn takes the signal on once everything is closed


@pytest.fixture
def api(tmp_path):
    """One API process, and nobody to take its jobs."""
    alone = ServiceProcess(tmp_path / "home")
    with alone.log.open("wb") as log:
        alone.process = subprocess.Popen(
            [sys.executable, "-m", "service.api"], env=alone.environment, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 60
        while not answers(alone.url):
            assert alone.process.poll() is None, alone.log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield alone
    finally:
        alone.process.kill()
        alone.process.wait()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=5).is_success
    except httpx.TransportError:
        return False


def test_an_upload_that_has_begun_is_taken_in(api, digits_npz):
    begun, told = threading.Event(), threading.Event()

    def body():
        yield digits_npz[:1000]
        begun.set()
        assert told.wait(30)
        time.sleep(0.5)
        yield digits_npz[1000:]

    with ThreadPoolExecutor() as threads:
        upload = threads.submit(httpx.post, f"{api.url}/v1/datasets?name=digits", content=body(), timeout=60)
        assert begun.wait(30)
        api.process.send_signal(signal.SIGTERM)
        told.set()
        answer = upload.result()
    assert (answer.status_code, answer.json()["name"]) == (201, "digits")
    assert api.process.wait(timeout=30) in ENDED
    assert "Traceback" not in api.log.read_text()


def test_who_waits_is_let_go_and_nobody_else_comes_in(api):
    with httpx.Client(base_url=api.url, timeout=90) as client:
        job = submit(client, kind="noop")["id"]
        waiting = http.client.HTTPConnection("127.0.0.1", api.port, timeout=90)
        waiting.request("GET", f"/v1/jobs/{job}?wait=60")  # sent; what follows is heard after it
        with closing(waiting), client.stream("GET", f"/v1/jobs/{job}/events") as events:
            lines = events.iter_lines()
            assert "event: state" in lines  # looked for line by line; the rest is read below
            began = time.monotonic()
            api.process.send_signal(signal.SIGTERM)
            assert json.load(waiting.getresponse())["state"] == "queued"
            list(lines)  # to its end, which is a clean one
        assert api.process.wait(timeout=30) in ENDED
        assert time.monotonic() - began < 30  # not the minute that was asked for
    assert not answers(api.url)
