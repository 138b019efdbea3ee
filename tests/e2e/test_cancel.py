import io
import time

import numpy as np
from making import submit, wait_for


def wait_for_progress(api, job_id: str, attempt: int = 1) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        events = api.get(f"/v1/jobs/{job_id}/events", params={"follow": False}).json()
        if sum(event["kind"] == "progress" and event["attempt"] == attempt for event in events) >= 2:
            return
        time.sleep(0.05)
    raise TimeoutError(job_id)


def working(service):
    """The runner that has an assignment: the spare one has used hardly any time."""
    return max(service.parts("worker.runner"), key=lambda process: sum(process.cpu_times()[:2]))


def test_a_cancelled_capture_stops_its_process_and_keeps_its_cards(service, api, model):
    job_id = submit(api, kind="capture", model=model["id"], count=300_000, r=20)["id"]
    wait_for_progress(api, job_id)
    runner = working(service)
    assert api.post(f"/v1/jobs/{job_id}/cancel").status_code == 202
    runner.wait(timeout=5)
    job = wait_for(api, job_id)
    assert (job["state"], job["result"], job["error"]) == ("cancelled", None, None)
    cards = np.load(io.BytesIO(api.get(f"/v1/jobs/{job_id}/artifacts/cards.npy").content))
    assert 0 < len(cards) < 300_000
    assert np.isfinite(cards).all()
    assert api.get(f"/v1/jobs/{job_id}/artifacts/sheet.png").status_code == 200
    assert job_id not in {item["job"] for item in api.get("/v1/flashcards?limit=200").json()["items"]}


def test_a_cancelled_training_goes_on_from_there_when_retried(service, api, dataset):
    spec = {"kind": "train", "dataset": dataset["id"], "architecture": "blk_2_fil_8", "epochs": 60, "batch_size": 32}
    job_id = submit(api, **spec)["id"]
    wait_for_progress(api, job_id)
    runner = working(service)
    api.post(f"/v1/jobs/{job_id}/cancel")
    runner.wait(timeout=5)
    stopped = wait_for(api, job_id)
    assert stopped["state"] == "cancelled"
    reached = stopped["progress"]["step"]
    assert api.post(f"/v1/jobs/{job_id}/retry").status_code == 202
    wait_for_progress(api, job_id, attempt=2)
    events = api.get(f"/v1/jobs/{job_id}/events", params={"follow": False}).json()
    second_try = [event for event in events if event["attempt"] == 2 and event["kind"] == "progress"]
    assert second_try[0]["data"]["step"] >= reached
    api.post(f"/v1/jobs/{job_id}/cancel")
    assert wait_for(api, job_id)["state"] == "cancelled"
