import io
import time

import numpy as np
import pytest
from making import submit, wait_for


def wait_for_progress(client, job_id: str, attempt: int = 1) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        events = client.get(f"/v1/jobs/{job_id}/events", params={"follow": False}).json()
        if sum(event["kind"] == "progress" and event["attempt"] == attempt for event in events) >= 2:
            return
        time.sleep(0.05)
    raise TimeoutError(job_id)


def cancel(ground, job_id: str) -> dict:
    """The job once it has ended; its process is gone within five seconds."""
    runner = ground.stack.working_runner(ground.stack.worker_of(job_id).pid)
    assert ground.client.post(f"/v1/jobs/{job_id}/cancel").status_code == 202
    runner.wait(timeout=5)
    return wait_for(ground.client, job_id)


def test_a_cancelled_capture_stops_its_process_and_keeps_its_cards(ground):
    client = ground.client
    job_id = submit(client, kind="capture", model=ground.model, count=300_000, r=20, shards=1)["id"]
    wait_for_progress(client, job_id)
    job = cancel(ground, job_id)
    assert (job["state"], job["result"], job["error"]) == ("cancelled", None, None)
    cards = np.load(io.BytesIO(client.get(f"/v1/jobs/{job_id}/artifacts/cards.npy").content))
    assert 0 < len(cards) < 300_000
    assert np.isfinite(cards).all()
    assert client.get(f"/v1/jobs/{job_id}/artifacts/sheet.png").status_code == 200
    assert job_id not in {item["job"] for item in client.get("/v1/flashcards?limit=200").json()["items"]}


@pytest.mark.parametrize("ground", ["embedded", pytest.param("servers", marks=pytest.mark.slow)], indirect=True)
def test_a_cancelled_training_goes_on_from_there_when_retried(ground):
    client = ground.client
    spec = {"kind": "train", "dataset": ground.images, "architecture": "blk_2_fil_8", "epochs": 60, "batch_size": 32}
    job_id = submit(client, **spec)["id"]
    wait_for_progress(client, job_id)
    stopped = cancel(ground, job_id)
    assert stopped["state"] == "cancelled"
    reached = stopped["progress"]["step"]
    assert client.post(f"/v1/jobs/{job_id}/retry").status_code == 202
    wait_for_progress(client, job_id, attempt=2)
    events = client.get(f"/v1/jobs/{job_id}/events", params={"follow": False}).json()
    second_try = [event for event in events if event["attempt"] == 2 and event["kind"] == "progress"]
    assert second_try[0]["data"]["step"] >= reached
    client.post(f"/v1/jobs/{job_id}/cancel")
    assert wait_for(client, job_id)["state"] == "cancelled"
