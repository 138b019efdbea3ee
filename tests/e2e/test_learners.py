"""kill -9 in the middle of a task: the learner ends where it would have ended, and knows its tasks as well."""

import time

import numpy as np
import pytest
from making import npz, push_dataset, submit, wait_for
from soundness import assert_ledger_sound

from ledger.store import Store
from tests.e2e.test_kills import kill_runner, kill_worker, wait_for_resume_point

SHORT = {"epochs": 3, "batch_size": 32, "learning_rate": 3e-3}
LONG = {"epochs": 12, "patience": 12, "batch_size": 32, "learning_rate": 1e-3}
NAIVE, CARDS = {"kind": "naive"}, {"kind": "flashcards", "count": 300}
TWO = [{**SHORT, "strategy": NAIVE}, {**LONG, "strategy": CARDS}]
FIVE = [TWO[0], *({**lesson, "strategy": CARDS} for lesson in (SHORT, LONG, SHORT, SHORT))]


def begin(ground, tasks: list[dict]) -> tuple[str, list[str]]:
    """A learner, and its tasks, posted at once."""
    client = ground.client
    learner = client.post("/v1/learners", json={"architecture": "blk_2_fil_8"}).json()["id"]
    posted = [
        client.post(f"/v1/learners/{learner}/tasks", json={**task, "dataset": ground.images, "name": f"task {number}"})
        for number, task in enumerate(tasks, start=1)
    ]
    return learner, [answer.json()["id"] for answer in posted]


def what_it_knows(client, learner: str) -> dict:
    """Its matrix, and the files of its versions; not how long it took."""
    matrix = client.get(f"/v1/learners/{learner}/matrix").json()
    versions = client.get(f"/v1/learners/{learner}/versions").json()["items"]
    files = [(version["number"], version["digest"], version["capsules"]) for version in versions]
    return {"matrix": matrix["matrix"], "estimated": matrix["estimated"], "bwt": matrix["bwt"], "files": files}


@pytest.mark.parametrize(
    ("ground", "kill"),
    [("embedded", kill_runner), ("servers", kill_worker)],
    indirect=["ground"],
)
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_learner_killed_in_its_third_task_ends_with_the_same_matrix(ground, kill):
    client, stack = ground.client, ground.stack
    unbroken, tasks = begin(ground, FIVE)
    assert [wait_for(client, task)["state"] for task in tasks] == ["succeeded"] * 5
    learner, tasks = begin(ground, FIVE)
    third = tasks[2]
    wait_for_resume_point(client, third)
    kill(stack, third)
    jobs = [wait_for(client, task) for task in tasks]
    assert [job["state"] for job in jobs] == ["succeeded"] * 5
    assert len(jobs[2]["attempts"]) >= 2
    assert what_it_knows(client, learner) == what_it_knows(client, unbroken)
    stack.wait_until_ready()
    assert_ledger_sound(stack.ledger, Store(stack.read_settings().store))


@pytest.mark.parametrize("ground", ["embedded"], indirect=True)
@pytest.mark.slow
def test_a_cancelled_task_leaves_the_learner_and_lets_the_next_one_run(ground):
    client = ground.client
    learner, (first, second) = begin(ground, TWO)
    wait_for(client, first)
    wait_for_resume_point(client, second)
    third = client.post(f"/v1/learners/{learner}/tasks", json={**TWO[0], "dataset": ground.images}).json()["id"]
    client.post(f"/v1/jobs/{second}/cancel")
    assert wait_for(client, second)["state"] == "cancelled"
    job = wait_for(client, third)
    assert (job["result"]["base_version"], job["result"]["version"]) == (1, 2)
    retried = client.post(f"/v1/jobs/{second}/retry").json()
    job = wait_for(client, retried["id"])
    assert (job["state"], job["result"]["base_version"], job["result"]["version"]) == ("succeeded", 2, 3), job
    assert client.get(f"/v1/learners/{learner}/matrix").json()["versions"] == [1, 2, 3]


def compare(ground) -> tuple[str, str]:
    """A comparison of two strategies on two tasks, and the task that is under way."""
    client = ground.client
    strategies = [NAIVE, CARDS]
    body = {**LONG, "kind": "compare", "datasets": [ground.images] * 2, "strategies": strategies}
    job = submit(client, **body, architecture="blk_2_fil_8")["id"]
    while not (running := client.get("/v1/jobs", params={"parent": job, "state": "running"}).json()["items"]):
        time.sleep(0.05)
    return job, running[0]["id"]


@pytest.mark.parametrize("ground", ["embedded", "servers"], indirect=True)
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_comparison_that_lost_a_worker_gives_the_same_table(ground):
    client, stack = ground.client, ground.stack
    unbroken = wait_for(client, compare(ground)[0])
    job_id, under_way = compare(ground)
    wait_for_resume_point(client, under_way)
    kill_worker(stack, under_way)
    job = wait_for(client, job_id)
    assert job["state"] == unbroken["state"] == "succeeded", (job["error"], unbroken["error"])
    assert len(client.get(f"/v1/jobs/{under_way}").json()["attempts"]) >= 2
    figures = [
        [(row["label"], row["average"], row["bwt"]) for row in each["result"]["table"]] for each in (job, unbroken)
    ]
    assert figures[0] == figures[1]
    stack.wait_until_ready()
    assert_ledger_sound(stack.ledger, Store(stack.read_settings().store))


CLASSES = {"scenario": "task_incremental", "architecture": "tasknet_width_4_hidden_32_latent_8"}
HALVES = {"epochs": 16, "patience": 16, "autoencoder_epochs": 40, "batch_size": 32, "learning_rate": 4e-3}


def push_halves(client, digits) -> list[str]:
    """Digits below five, and the others, with their labels."""
    pushed = []
    for name, keep in (("low", lambda y: y < 5), ("high", lambda y: y >= 5)):
        arrays = {}
        for split, most in (("train", 600), ("test", 100)):
            rows = np.flatnonzero(keep(digits[f"y_{split}"]))[:most]
            arrays |= {f"{each}_{split}": digits[f"{each}_{split}"][rows] for each in "xy"}
        pushed.append(push_dataset(client, npz(**arrays), name)["id"])
    return pushed


@pytest.mark.parametrize("ground", ["embedded"], indirect=True)
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_learner_of_classes_killed_in_both_of_its_trainings_ends_with_the_same_matrix(ground, digits):
    client, stack = ground.client, ground.stack
    halves, known = push_halves(client, digits), []
    for kills in (0, 2):
        learner = client.post("/v1/learners", json=CLASSES).json()["id"]
        for number, dataset in enumerate(halves):
            job = client.post(f"/v1/learners/{learner}/tasks", json={**HALVES, "dataset": dataset}).json()["id"]
            for kill in range(kills if number else 0):
                wait_until_past(client, job, 0.1 if kill == 0 else 0.6)
                kill_runner(stack, job)
            done = wait_for(client, job)
            assert done["state"] == "succeeded", done["error"]
        assert len(done["attempts"]) >= 1 + kills
        versions = client.get(f"/v1/learners/{learner}/versions").json()["items"]
        files = [(each["digest"], each["autoencoder_digest"], each["capsules"]) for each in versions]
        matrix = client.get(f"/v1/learners/{learner}/matrix").json()
        known.append((files, matrix["matrix"], matrix["matrix_without_task_id"]))
    assert known[0] == known[1]


def wait_until_past(client, job: str, fraction: float) -> None:
    """With a resume point to come back to: the two trainings of a task are about halves of it."""
    for _ in range(6000):
        found = client.get(f"/v1/jobs/{job}").json()
        if found["progress"]["fraction"] >= fraction:
            wait_for_resume_point(client, job)
            return
        assert found["state"] in ("queued", "running"), found
        time.sleep(0.05)
    raise TimeoutError(found)
