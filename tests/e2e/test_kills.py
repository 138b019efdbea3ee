"""kill -9 in the middle of a training, then look at what is left: the same weights to the last bit, once."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from making import submit, wait_for
from soundness import assert_ledger_sound, assert_work_tidy
from stack import running_stack

from flashcards import leash
from ledger.store import Store
from tests.e2e.conftest import TRAINING, digest_of_weights

slow = pytest.mark.slow


def wait_for_resume_point(client, job_id, after: int = 0, seconds: float = 60) -> int:
    """Of an attempt later than `after`: one that was killed may have left another before it died."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        events = client.get(f"/v1/jobs/{job_id}/events", params={"follow": False}).json()
        attempts = [event["attempt"] for event in events if event["kind"] == "resume_point"]
        if attempts and attempts[-1] > after:
            return attempts[-1]
        assert events[-1]["data"].get("state") not in ("succeeded", "failed"), events[-1]
        time.sleep(0.05)
    raise TimeoutError(f"no resume point after attempt {after}")


def kill_runner(stack, job_id):
    stack.working_runner(stack.worker_of(job_id).pid).kill()


def kill_worker(stack, job_id):
    stack.worker_of(job_id).kill()


def kill_everything(stack, job_id):
    stack.kill_everything()
    stack.wait_until_ready()


KILLS = [
    ("embedded", kill_runner),
    pytest.param("embedded", kill_worker, marks=slow),
    pytest.param("embedded", kill_everything, marks=slow),
    pytest.param("servers", kill_worker, marks=slow),
    pytest.param("servers", kill_runner, marks=slow),
    pytest.param("servers", kill_everything, marks=slow),
]


@pytest.mark.parametrize(("ground", "kill"), KILLS, indirect=["ground"])
def test_a_killed_training_ends_with_the_same_weights(ground, kill):
    client, stack, unbroken = ground.client, ground.stack, ground.unbroken
    job_id = submit(client, **TRAINING, dataset=ground.images)["id"]
    killed = wait_for_resume_point(client, job_id)
    kill(stack, job_id)
    wait_for_resume_point(client, job_id, after=killed)
    kill(stack, job_id)
    job = wait_for(client, job_id)
    assert job["state"] == "succeeded", job["error"]
    assert len(job["attempts"]) >= 3
    assert digest_of_weights(job) == unbroken
    stack.wait_until_ready()
    assert_ledger_sound(stack.ledger, Store(stack.read_settings().store))
    assert_work_tidy(stack.ledger, stack.home / "work")


@slow
def test_a_stopped_service_gives_its_job_back_and_goes_on_later(ground):
    """SIGTERM, as a deploy sends it: nothing is lost, and it costs no try."""
    client, stack, unbroken = ground.client, ground.stack, ground.unbroken
    job_id = submit(client, **TRAINING, dataset=ground.images, max_attempts=1)["id"]
    wait_for_resume_point(client, job_id)
    stack.stop()
    stack.keeper.start()
    stack.wait_until_ready()
    job = wait_for(client, job_id)
    assert job["state"] == "succeeded", job["error"]
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["released", "succeeded"]
    assert digest_of_weights(job) == unbroken


@pytest.mark.parametrize("ground", ["embedded", pytest.param("servers", marks=slow)], indirect=True)
def test_a_runner_does_not_outlive_its_worker(ground):
    client, stack = ground.client, ground.stack
    job_id = submit(client, **TRAINING, dataset=ground.images)["id"]
    wait_for_resume_point(client, job_id)
    worker = stack.worker_of(job_id)
    orphans = worker.children(recursive=True)
    assert len(orphans) == 2  # the nursery and the runner
    worker.kill()
    assert not psutil.wait_procs(orphans, timeout=20)[1]
    client.post(f"/v1/jobs/{job_id}/cancel")
    assert wait_for(client, job_id)["state"] == "cancelled"
    stack.wait_until_ready()


@pytest.mark.slow
def test_the_parts_do_not_outlive_serve(tmp_path):
    with running_stack("embedded", tmp_path) as stack:
        while not stack.processes("worker.runner"):
            time.sleep(0.1)
        stack.keeper.rest()
        parts = stack.processes()
        stack.process("service").kill()
        assert not psutil.wait_procs(parts, timeout=20)[1]


@pytest.mark.parametrize(("module", "slowest"), [("service.api", "service.server"), ("worker", "worker.process")])
def test_a_part_whose_parent_died_while_it_started_never_starts(module, slowest):
    command = [sys.executable, "-X", "importtime", "-m", module]
    environment = {**os.environ, leash.VARIABLE: "1"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGTERM
    assert f"| {slowest}\n" not in done.stderr
