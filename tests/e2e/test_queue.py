"""The queue as a door, from processes that know the broker and nothing of ours."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from making import submit, wait_for

GUIDE = Path(__file__).parents[2] / "docs" / "queue.md"
CELERY, REDIS, WORKER, READER = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
#: Whatever the program does, none of our packages may have been imported for it.
NOTHING_OF_OURS = """
import sys
ours = {name for name in sys.modules if name.split(".")[0] in ("flashcards", "service", "ledger", "worker", "engine")}
assert not ours, ours
"""
TRAINING = {"kind": "train", "architecture": "blk_2_fil_8", "epochs": 100_000, "patience": 100_000}
servers = pytest.mark.parametrize("ground", ["servers"], indirect=True)


def environment(ground) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLASHCARDS", "PYTHON"))}
    return {**kept, "BROKER": ground.stack.redis.url}


def run(ground, tmp_path, program: str) -> str:
    """In a folder of its own, without our tree on its path."""
    file = tmp_path / "program.py"
    file.write_text(program + NOTHING_OF_OURS)
    ended = subprocess.run(
        [sys.executable, "-I", file], env=environment(ground), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def settled(ground, id: str, seconds: float = 30) -> dict:
    """What came of the message, once a worker has read it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = ground.client.get(f"/v1/submissions/{id}")
        if answer.status_code == 200:
            return answer.json()
        assert answer.status_code == 404, answer.text
        time.sleep(0.05)
    raise TimeoutError(id)


@servers
def test_the_producer_of_the_guide(ground, tmp_path):
    run(ground, tmp_path, CELERY)
    submission = settled(ground, "line-7-0001")
    assert submission["state"] == "accepted"
    assert wait_for(ground.client, submission["job"])["state"] == "succeeded"
    told = [run(ground, tmp_path, READER).split() for _ in range(2)]
    assert sorted(told) == [
        ["job.succeeded", "line-7-0001", submission["job"]],
        ["submission.accepted", "line-7-0001", submission["job"]],
    ]


@servers
def test_the_producer_without_celery_sends_twice_and_gets_one_job(ground, tmp_path):
    for _ in range(2):
        run(ground, tmp_path, REDIS)
    submission = settled(ground, "line-7-0002")
    assert wait_for(ground.client, submission["job"])["state"] == "succeeded"
    wait_until_read(ground)
    assert settled(ground, "line-7-0002") == submission


@servers
def test_a_celery_worker_of_the_caller_hears_what_became_of_it(ground, tmp_path):
    with celery_worker(ground, tmp_path) as log:
        run(ground, tmp_path, CELERY.replace("line-7", "line-8"))
        submission = settled(ground, "line-8-0001")
        deadline = time.monotonic() + 60
        while "job.succeeded" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
    assert f"job.succeeded line-8-0001 {submission['job']} None" in log.read_text()


@contextmanager
def celery_worker(ground, tmp_path):
    (tmp_path / "results.py").write_text(WORKER)
    log = tmp_path / "results.log"
    command = [
        sys.executable,
        "-m",
        "celery",
        "--app",
        "results",
        "worker",
        "--queues",
        "results.line-8",
        "--pool=solo",
    ]
    with log.open("w") as file:
        process = subprocess.Popen(command, env=environment(ground), cwd=tmp_path, stdout=file, stderr=file)
    try:
        yield log
    finally:
        process.kill()
        process.wait()


def wait_until_read(ground, seconds: float = 30) -> None:
    with redis.Redis.from_url(ground.stack.redis.url) as broker:
        deadline = time.monotonic() + seconds
        while broker.llen("flashcards.submit") or list(broker.scan_iter("flashcards.submit.taken.*")):
            assert time.monotonic() < deadline, "messages are left"
            time.sleep(0.05)


def send(ground, **fields) -> None:
    """As the guide says: to whichever broker this stack has."""
    if ground.stack.name == "servers":
        with redis.Redis.from_url(ground.stack.redis.url) as broker:
            broker.lpush("flashcards.submit", json.dumps(fields))
        return
    folder = ground.stack.home / "broker" / "flashcards.submit"
    draft = folder / f"{time.time_ns()}.tmp"
    draft.write_text(json.dumps(fields))
    draft.rename(draft.with_suffix(".msg"))


def test_both_brokers_take_a_job_in(ground):
    send(ground, id=f"both-{ground.stack.name}", job={"kind": "noop"})
    submission = settled(ground, f"both-{ground.stack.name}")
    assert wait_for(ground.client, submission["job"])["state"] == "succeeded"


@pytest.mark.parametrize("ground", ["embedded"], indirect=True)
def test_a_worker_whose_only_slot_is_taken_still_reads(ground):
    training = submit(ground.client, **TRAINING, dataset=ground.images)
    until(lambda: ground.client.get(f"/v1/jobs/{training['id']}").json()["state"] == "running")
    try:
        send(ground, id="meanwhile", job={"kind": "noop"})
        job = ground.client.get(f"/v1/jobs/{settled(ground, 'meanwhile')['job']}").json()
        assert (job["state"], job["queue_position"]) == ("queued", 1)
    finally:
        ground.client.post(f"/v1/jobs/{training['id']}/cancel")
    assert wait_for(ground.client, job["id"])["state"] == "succeeded"


@pytest.mark.parametrize("ground", ["embedded", pytest.param("servers", marks=pytest.mark.slow)], indirect=True)
def test_workers_killed_while_they_read_lose_nothing(ground):
    count, name = 120, f"killed-{ground.stack.name}"
    for number in range(count):
        send(ground, id=f"{name}-{number}", job={"kind": "noop", "labels": {"run": name}})
        if number % 40 == 20:
            for worker in ground.stack.processes("worker"):
                worker.kill()
    ground.stack.wait_until_ready()
    submissions = [settled(ground, f"{name}-{number}", 60) for number in range(count)]
    jobs = {submission["job"] for submission in submissions}
    assert len(jobs) == count
    for job_id in jobs:
        assert wait_for(ground.client, job_id)["state"] == "succeeded"
    listed = ground.client.get("/v1/jobs", params={"label": f"run={name}", "limit": 200}).json()["items"]
    assert {job["id"] for job in listed} == jobs


@pytest.mark.parametrize("ground", ["embedded"], indirect=True)
def test_what_was_sent_while_nobody_was_up_is_read_at_the_start(ground):
    ground.stack.keeper.rest()
    ground.stack.kill_all_processes()
    send(ground, id="early", job={"kind": "noop"})
    ground.stack.keeper.start()
    ground.stack.wait_until_ready()
    assert wait_for(ground.client, settled(ground, "early")["job"])["state"] == "succeeded"


def until(is_so, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)
