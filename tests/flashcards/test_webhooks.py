"""The client, the command line, and the receiver of the guide, against a live service and real deliveries."""

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from service_process import free_port, running_service
from typer.testing import CliRunner

from flashcards import AsyncClient, Client
from flashcards.cli import app
from flashcards.errors import ApiError

GUIDE = Path(__file__).parents[2] / "docs" / "webhooks.md"


@pytest.fixture(scope="module")
def near(tmp_path_factory):
    """A service that may post to this machine."""
    home = tmp_path_factory.mktemp("near") / "home"
    allowed = {
        "webhook_private_networks": '["127.0.0.1/32"]',
        "webhook_poll_seconds": 0.1,
        "webhook_pauses": "[0.2, 0.2]",
    }
    with running_service(home, threads=1, **allowed) as running:
        yield running


@pytest.fixture(scope="module")
def near_client(near):
    with Client(near.url) as client:
        yield client


@pytest.fixture
def run(near):
    def run(*words, exit_code: int = 0):
        done = CliRunner().invoke(app, list(words), env={"FLASHCARDS_URL": near.url})
        assert done.exit_code == exit_code, done.output
        return done

    return run


@pytest.fixture
def receiver(tmp_path):
    """The one of the guide, as it is printed there: started with a secret, at an address chosen before."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    (tmp_path / "receiver.py").write_text(code)
    port, started = free_port(), []

    def start(secret: str) -> Path:
        output = tmp_path / "output"
        command = [sys.executable, "-m", "uvicorn", "receiver:app", "--port", str(port), "--log-level", "warning"]
        environment = {**os.environ, "WEBHOOK_SECRET": secret}
        with output.open("wb") as file:
            started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=file, stderr=file))
        wait_until(lambda: _answers(port))
        return output

    yield f"http://127.0.0.1:{port}/flashcards", start
    for process in started:
        process.terminate()
        process.wait(20)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/").status_code == 404
    except httpx.TransportError:
        return False


def wait_until(true, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def states(client, id) -> list[str]:
    return [delivery.state for delivery in client.webhooks.each_delivery(id)]


def test_the_receiver_of_the_guide_verifies_and_takes_each_event_once(near_client, receiver):
    url, start = receiver
    made = near_client.webhooks.create(url, ["job.succeeded"], labels={"for": "guide"}, name="guide")
    output = start(made.secret)
    job = near_client.submit({"kind": "noop", "labels": {"for": "guide"}}).wait()
    wait_until(lambda: states(near_client, made.id) == ["delivered"])
    (delivery,) = near_client.webhooks.deliveries(made.id).items
    near_client.webhooks.redeliver(made.id, delivery.id)
    wait_until(lambda: len(near_client.webhooks.delivery(made.id, delivery.id).tries) == 2)
    wait_until(lambda: states(near_client, made.id) == ["delivered"])
    assert output.read_text().splitlines() == [f"job.succeeded {job.id}"]
    assert httpx.post(url, content=b"{}", headers={"webhook-id": "x"}).status_code == 500
    near_client.webhooks.delete(made.id)


def test_after_a_rotation_it_still_does(near_client, receiver):
    url, start = receiver
    made = near_client.webhooks.create(url, ["job.succeeded"], labels={"for": "rotation"})
    output = start(made.secret)
    again = near_client.webhooks.rotate(made.id, grace_hours=1)
    assert again.secret not in (None, made.secret)
    assert again.previous_until is not None
    job = near_client.submit({"kind": "noop", "labels": {"for": "rotation"}}).wait()
    wait_until(lambda: states(near_client, made.id) == ["delivered"])
    assert job.id in output.read_text()
    near_client.webhooks.delete(made.id)


def test_the_client_that_awaits(near):
    async def live() -> None:
        async with AsyncClient(near.url) as client:
            made = await client.webhooks.create("https://hooks.invalid/", ["job.failed"])
            assert made.id in [each.id async for each in client.webhooks.each()]
            assert (await client.webhooks.get(made.id)).events == ["job.failed"]
            assert [each async for each in client.webhooks.each_delivery(made.id, "pending")] == []
            await client.webhooks.delete(made.id)

    asyncio.run(live())


def test_a_private_address_is_said(near_client):
    with pytest.raises(ApiError, match="no address of the internet"):
        near_client.webhooks.create("https://127.0.0.2/", ["job.failed"])


def test_a_life_on_the_command_line(run, near_client):
    events = ("--event", "job.succeeded", "--event", "job.failed")
    made = run("webhooks", "create", "https://hooks.invalid/", *events, "--label", "for=shell", "--name", "shell")
    assert made.stdout.startswith("whsec_")
    id = made.stderr.split(":")[0]
    assert "for=shell" in run("webhooks", "ls").stdout
    assert "job.failed, job.succeeded" in run("webhooks", "show", id).stdout
    near_client.submit({"kind": "noop", "labels": {"for": "shell"}}).wait()
    wait_until(lambda: states(near_client, id) == ["given_up"])
    listed = run("webhooks", "deliveries", id, "--state", "given_up").stdout
    assert "cannot be reached" in listed
    delivery = re.search(r"delivery_\w+", listed)[0]
    assert "sent again" in run("webhooks", "redeliver", id, delivery).stderr
    rotated = run("webhooks", "rotate", id, "--grace-hours", "1")
    assert rotated.stdout.startswith("whsec_")
    assert rotated.stdout != made.stdout
    assert "good until" in run("webhooks", "show", id).stdout
    run("webhooks", "rm", id)
    run("webhooks", "show", id, exit_code=1)


def test_an_unknown_event_is_said(run):
    said = run("webhooks", "create", "https://x.invalid/", "--event", "job.started", exit_code=1).stderr
    assert "events" in said
    assert "job.succeeded" in said
