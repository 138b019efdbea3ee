"""kill -9 in the middle of an upload: of the API that takes it, and of the command that sends it."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
from making import npz
from pieces import digest_of, send
from servers import open_folder
from soundness import assert_ledger_sound
from stack import STACKS, Stack, running_stack

from flashcards import Client
from ledger.store import Store

pytestmark = pytest.mark.slow
COMMAND = Path(sys.executable).with_name("flashcards")
PART = 100_000


@pytest.fixture(scope="module", params=list(STACKS))
def stack(request):
    with open_folder() as folder, running_stack(request.param, folder, upload_part_bytes=PART) as running:
        yield running


@pytest.fixture
def api(stack):
    transport = httpx.HTTPTransport(retries=20)
    with httpx.Client(base_url=stack.url, timeout=60, transport=transport) as client:
        yield client


def images(seed: int, count: int = 1500) -> bytes:
    return npz(x=np.random.default_rng(seed).integers(0, 256, (count, 32, 32), np.uint8))


def kill_apis(stack: Stack) -> None:
    for process in stack.processes("service.api"):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def is_sound(stack: Stack) -> None:
    stack.wait_until_ready()
    assert_ledger_sound(stack.ledger, Store(stack.read_settings().store))


@pytest.mark.timeout(300)
def test_what_was_acknowledged_outlives_the_apis(stack, api, tmp_path):
    path = tmp_path / "images.npz"
    path.write_bytes(images(1))
    missing = []

    def kill(sent: int, size: int) -> None:
        if sent // PART not in (4, 9):
            return
        kill_apis(stack)
        stack.wait_until_ready()
        (upload,) = [item for item in api.get("/v1/uploads").json()["items"] if not item["became"]]
        missing.append(upload["missing"])

    with Client(stack.url, parts_above=0) as client:
        made = client.datasets.push(path, progress=kill)
        parts = -(-path.stat().st_size // PART)
        assert missing == [list(range(5, parts + 1)), list(range(10, parts + 1))]
        assert client.datasets.download(made.id, tmp_path / "back").read_bytes() == path.read_bytes()
    is_sound(stack)


@pytest.mark.timeout(300)
def test_an_answer_that_a_kill_took_is_given_when_asked_again(stack, api):
    """At some moment of the checks: either it was made and is told of, or it is made now. Never twice."""
    for seed, pause in ((2, 0.05), (3, 0.3), (4, 0.8)):
        sent = images(seed)
        upload = send(api, sent)
        question = {"name": f"killed {seed}", "upload": upload["id"]}
        with ThreadPoolExecutor(1) as pool:
            lost = pool.submit(httpx.post, f"{stack.url}/v1/datasets", params=question, timeout=60)
            time.sleep(pause)
            kill_apis(stack)
            with suppress(httpx.TransportError):
                lost.result()
        stack.wait_until_ready()
        made = api.post("/v1/datasets", params=question)
        assert made.status_code == 201, made.text
        assert api.get(f"{made.headers['location']}/file").content == sent
        names = [item["name"] for item in api.get("/v1/datasets?limit=200").json()["items"]]
        assert names.count(f"killed {seed}") == 1
    is_sound(stack)


def test_every_api_knows_the_parts_that_the_others_took(stack):
    sent = images(5)
    begun = {"digest": digest_of(sent), "size": len(sent)}
    urls = stack.api_urls
    upload = httpx.post(f"{urls[0]}/v1/uploads", json=begun).json()
    for part in upload["missing"]:
        data = sent[(part - 1) * PART : part * PART]
        path = f"{urls[part % len(urls)]}/v1/uploads/{upload['id']}/parts/{part}"
        assert httpx.put(path, content=data, timeout=60).status_code == 200
    question = {"name": "from everywhere", "upload": upload["id"]}
    answers = [httpx.post(f"{url}/v1/datasets", params=question, timeout=60) for url in urls]
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1


@pytest.mark.timeout(300)
def test_a_push_that_was_killed_goes_on_when_it_is_run_again(stack, api, tmp_path):
    """As large as the command takes in parts."""
    path = tmp_path / "large.npz"
    path.write_bytes(images(6, count=66_000))
    digest = digest_of(path.read_bytes())
    push = [COMMAND, "datasets", "push", path, "--name", "pushed twice", "--json"]
    environment = {**os.environ, "FLASHCARDS_URL": stack.url}
    first = subprocess.Popen(push, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    here: set[int] = set()
    while len(here) < 50:
        assert first.poll() is None
        for item in api.get("/v1/uploads").json()["items"]:
            if item["digest"] == digest:
                here = set(range(1, item["parts"] + 1)) - set(item["missing"])
        time.sleep(0.02)
    first.kill()
    first.wait()
    (left,) = [item for item in api.get("/v1/uploads").json()["items"] if not item["became"]]
    assert left["missing"]
    subprocess.run(push, env=environment, check=True, stdout=subprocess.DEVNULL)
    upload = api.get(f"/v1/uploads/{left['id']}").json()
    assert (upload["missing"], upload["became"] is not None) == ([], True)
    (made,) = [item for item in api.get("/v1/datasets").json()["items"] if item["name"] == "pushed twice"]
    assert upload["became"] == f"/v1/datasets/{made['id']}"
    assert made["digest"] == left["digest"] == digest
