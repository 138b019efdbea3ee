"""kill -9 in the middle of a task: the learner ends where it would have ended, and knows its tasks as well."""

import pytest
from making import wait_for
from soundness import assert_ledger_sound

from ledger.store import Store
from tests.e2e.test_kills import kill_runner, kill_worker, wait_for_resume_point

FIRST = {"epochs": 3, "batch_size": 32, "strategy": {"kind": "naive"}, "learning_rate": 3e-3}
SECOND = {"epochs": 12, "patience": 12, "batch_size": 32, "strategy": {"kind": "flashcards", "count": 300}}


def begin(ground) -> tuple[str, list[str]]:
    """A learner, and its two tasks, posted at once."""
    client = ground.client
    learner = client.post("/v1/learners", json={"architecture": "blk_2_fil_8"}).json()["id"]
    tasks = [
        client.post(f"/v1/learners/{learner}/tasks", json={**task, "dataset": ground.images, "name": name}).json()["id"]
        for name, task in (("first", FIRST), ("second", SECOND))
    ]
    return learner, tasks


def what_it_knows(client, learner: str) -> dict:
    """Its matrix, and the files of its versions; not how long it took."""
    matrix = client.get(f"/v1/learners/{learner}/matrix").json()
    versions = client.get(f"/v1/learners/{learner}/versions").json()["items"]
    files = [(version["number"], version["digest"], version["capsules"]) for version in versions]
    return {"matrix": matrix["matrix"], "estimated": matrix["estimated"], "bwt": matrix["bwt"], "files": files}


@pytest.mark.parametrize(
    ("ground", "kill"),
    [("embedded", kill_runner), pytest.param("servers", kill_worker, marks=pytest.mark.slow)],
    indirect=["ground"],
)
@pytest.mark.slow
def test_a_killed_task_ends_with_the_same_matrix(ground, kill):
    client, stack = ground.client, ground.stack
    unbroken, tasks = begin(ground)
    assert [wait_for(client, task)["state"] for task in tasks] == ["succeeded"] * 2
    learner, (first, second) = begin(ground)
    wait_for(client, first)
    wait_for_resume_point(client, second)
    kill(stack, second)
    job = wait_for(client, second)
    assert job["state"] == "succeeded", job["error"]
    assert len(job["attempts"]) >= 2
    assert what_it_knows(client, learner) == what_it_knows(client, unbroken)
    stack.wait_until_ready()
    assert_ledger_sound(stack.ledger, Store(stack.read_settings().store))


@pytest.mark.parametrize("ground", ["embedded"], indirect=True)
@pytest.mark.slow
def test_a_cancelled_task_leaves_the_learner_and_lets_the_next_one_run(ground):
    client = ground.client
    learner, (first, second) = begin(ground)
    wait_for(client, first)
    wait_for_resume_point(client, second)
    third = client.post(f"/v1/learners/{learner}/tasks", json={**FIRST, "dataset": ground.images}).json()["id"]
    client.post(f"/v1/jobs/{second}/cancel")
    assert wait_for(client, second)["state"] == "cancelled"
    job = wait_for(client, third)
    assert (job["result"]["base_version"], job["result"]["version"]) == (1, 2)
    retried = client.post(f"/v1/jobs/{second}/retry").json()
    job = wait_for(client, retried["id"])
    assert (job["state"], job["result"]["base_version"], job["result"]["version"]) == ("succeeded", 2, 3), job
    assert client.get(f"/v1/learners/{learner}/matrix").json()["versions"] == [1, 2, 3]
