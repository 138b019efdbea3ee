"""A capture that is split, on real workers: the cards of one piece, whatever is killed, and stopped when told to."""

import time

import pytest
from making import finished, submit, wait_for
from soundness import assert_ledger_sound

from ledger.store import Store
from tests.e2e.test_kills import kill_runner, kill_worker, wait_for_resume_point

slow = pytest.mark.slow
#: Some hundred passes a chunk make a shard long enough to be killed half-way.
LONG = {"kind": "capture", "source": "maze", "count": 64 * 10 + 7, "r": 250}
PATIENCE = 600  # seconds, for a machine that has other things to do
TIMES = ("flashcards", "seconds", "cards_per_second", "shards")
EITHER = ["embedded", pytest.param("servers", marks=slow)]


def shards_of(client, job_id) -> list[dict]:
    listed = client.get("/v1/jobs", params={"parent": job_id, "order": "oldest"}).json()["items"]
    return [client.get(f"/v1/jobs/{each['id']}").json() for each in listed]


def wait_for_running_shard(client, job_id, seconds: float = 120) -> dict:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        running = [shard for shard in shards_of(client, job_id) if shard["state"] == "running"]
        if running:
            return running[0]
        time.sleep(0.05)
    raise TimeoutError(f"no shard of {job_id} runs")


@pytest.fixture
def unbroken(ground) -> dict:
    """The same capture in one piece; made once for all that are like it."""
    for each in ground.client.get("/v1/jobs", params={"label": "made=alone"}).json()["items"]:
        return each
    job = wait_for(
        ground.client,
        submit(ground.client, **LONG, model=ground.model, shards=1, labels={"made": "alone"})["id"],
        PATIENCE,
    )
    assert job["state"] == "succeeded", job["error"]
    return job


def said(job: dict) -> dict:
    return {name: value for name, value in job["result"].items() if name not in TIMES}


def check_sound(stack):
    assert_ledger_sound(stack.ledger, Store(stack.read_settings().store))


@pytest.mark.parametrize("ground", EITHER, indirect=True)
def test_the_cards_are_those_of_one_piece(ground):
    client = ground.client
    asked = {"kind": "capture", "model": ground.model, "source": "maze", "count": 333, "r": 3}
    alone, job = finished(client, **asked, shards=1), finished(client, **asked, shards=3)
    assert (alone["result"]["shards"], job["result"]["shards"]) == (1, 3)
    assert said(job) == said(alone)
    assert [(each["name"], each["digest"]) for each in job["artifacts"]] == [
        (each["name"], each["digest"]) for each in alone["artifacts"]
    ]
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["split", "succeeded"]
    events = client.get(f"/v1/jobs/{job['id']}/events", params={"follow": False}).json()
    states = [event["data"]["state"] for event in events if event["kind"] == "state"]
    assert states == ["queued", "running", "waiting", "queued", "running", "succeeded"]
    made = shards_of(client, job["id"])
    assert [(shard["kind"], shard["spec"]["first"], shard["spec"]["count"]) for shard in made] == [
        *(("shard", 0, 128), ("shard", 128, 128), ("shard", 256, 77))
    ]
    assert [shard["artifacts"] for shard in made] == [[], [], []]
    check_sound(ground.stack)


@slow
@pytest.mark.parametrize(
    ("ground", "kill"),
    [("embedded", kill_runner), ("servers", kill_runner), ("servers", kill_worker)],
    indirect=["ground"],
)
def test_a_killed_shard_is_done_again_alone(ground, unbroken, kill):
    client, stack = ground.client, ground.stack
    job_id = submit(client, **LONG, model=ground.model, shards=2)["id"]
    killed = wait_for_running_shard(client, job_id)["id"]
    wait_for_resume_point(client, killed)
    kill(stack, killed)
    job = wait_for(client, job_id, PATIENCE)
    assert job["state"] == "succeeded", job["error"]
    outcomes = {shard["id"]: [each["outcome"] for each in shard["attempts"]] for shard in shards_of(client, job_id)}
    assert outcomes.pop(killed) == ["lost", "succeeded"]
    assert list(outcomes.values()) == [["succeeded"]]
    assert said(job) == said(unbroken)
    stack.wait_until_ready()
    check_sound(stack)


@slow
@pytest.mark.parametrize("ground", ["embedded", "servers"], indirect=True)
def test_a_cancelled_capture_stops_its_shards_and_a_retry_makes_the_rest(ground, unbroken):
    client, stack = ground.client, ground.stack
    job_id = submit(client, **LONG, model=ground.model, shards=2)["id"]
    running = wait_for_running_shard(client, job_id)["id"]
    wait_for_resume_point(client, running)
    assert client.post(f"/v1/jobs/{running}/cancel").status_code == 409
    assert client.post(f"/v1/jobs/{job_id}/cancel").json()["state"] == "cancelled"
    stopped = [wait_for(client, shard["id"], 60) for shard in shards_of(client, job_id)]
    assert {shard["state"] for shard in stopped} == {"cancelled"}
    made = next(shard for shard in stopped if shard["id"] == running)
    assert [each["name"] for each in made["artifacts"]] == ["cards.npy"]
    refused = client.delete(f"/v1/jobs/{running}/artifacts/cards.npy")
    assert (refused.status_code, job_id in refused.json()["detail"]) == (409, True)
    assert client.post(f"/v1/jobs/{job_id}/retry").json()["state"] == "waiting"
    job = wait_for(client, job_id, PATIENCE)
    assert job["state"] == "succeeded", job["error"]
    assert said(job) == said(unbroken)
    check_sound(stack)
