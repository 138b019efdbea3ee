"""A backup under load, restored elsewhere: every succeeded job's files open, and hold what their digests say."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from making import finished, push_dataset, push_model, submit, wait_for
from patient import Patient
from servers import open_folder
from soundness import assert_ledger_sound
from stack import STACKS, Stack, running_stack

from ledger.store import Store

CLIENTS = 3
LONG = {"kind": "train", "architecture": "blk_2_fil_8", "epochs": 250, "patience": 250, "batch_size": 32}
#: No worker dies here, so that what runs twice would be the fault of the backup; what is deleted goes soon.
TEMPO = {"lease_seconds": 120, "collect_grace_seconds": 30, "collect_seconds": 1}
COMMAND = Path(sys.executable).with_name("flashcards")


class Load(threading.Thread):
    """Small jobs one after the other; every third is deleted, with its cards, as soon as it has ended."""

    def __init__(self, url: str, model: str, over: threading.Event) -> None:
        super().__init__()
        self.url, self.model, self.over = url, model, over
        self.done = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        patient = Patient()
        try:
            while not self.over.is_set():
                self.one_round(patient)
        except BaseException as failure:
            self.failure = failure
        finally:
            patient.close()

    def one_round(self, patient: Patient) -> None:
        spec = {"kind": "capture", "model": self.model, "count": 3, "r": 1, "seed": self.done}
        job = self.finish(patient, "capture", spec)
        self.finish(patient, "noop", {"kind": "noop"})
        if self.done % 3 == 2:
            for path in (f"flashcards/{job['result']['flashcards']}", f"jobs/{job['id']}"):
                assert patient.ask("DELETE", f"{self.url}/v1/{path}").status_code == 204
        self.done += 1

    def finish(self, patient: Patient, what: str, spec: dict) -> dict:
        answer = patient.ask("POST", f"{self.url}/v1/jobs", f"{self.name}-{what}-{self.done}", json=spec)
        assert answer.status_code == 202, answer.text
        job = answer.json()
        while job["state"] != "succeeded":
            assert job["state"] not in ("failed", "cancelled"), job
            job = patient.ask("GET", f"{self.url}/v1/jobs/{job['id']}", params={"wait": 5}).json()
        return job


def flashcards(stack: Stack, *words: str) -> dict:
    """The command as an operator types it, with the settings of this stack."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FLASHCARDS_")}
    ours = {f"FLASHCARDS_{name.upper()}": str(value) for name, value in stack.settings.items()}
    done = subprocess.run(
        [str(COMMAND), *words, "--json"], env={**plain, **ours}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def back_up_under_load(stack: Stack, digits_npz: bytes, target: Path) -> tuple[dict, str | None]:
    """What the last backup says; and, where there is a worker to spare, the training that ran when it was taken."""
    with httpx.Client(base_url=stack.url, timeout=60) as client:
        images, model = push_dataset(client, digits_npz)["id"], push_model(client)["id"]
        finished(client, kind="capture", model=model, count=5, r=1)
        long = submit(client, **LONG, dataset=images)["id"] if stack.worker_count > 1 else None
        over = threading.Event()
        loads = [Load(stack.url, model, over) for _ in range(CLIENTS)]
        for load in loads:
            load.start()
        try:
            if long is not None:
                wait_for_resume_point(client, long)
            told = [flashcards(stack, "backup", str(target)) for _ in range(2)][-1]
            assert long is None or client.get(f"/v1/jobs/{long}").json()["state"] == "running", "it was over too soon"
        finally:
            over.set()
            for load in loads:
                load.join()
        assert [load.failure for load in loads] == [None] * CLIENTS
        assert sum(load.done for load in loads) >= CLIENTS
    return told, long


def wait_for_resume_point(client: httpx.Client, job_id: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        events = client.get(f"/v1/jobs/{job_id}/events", params={"follow": False}).json()
        if any(event["kind"] == "resume_point" for event in events):
            return
        time.sleep(0.1)
    raise TimeoutError(job_id)


def wait_for_all(client: httpx.Client, seconds: float = 120) -> None:
    """What was queued or running when the backup was taken comes to its end as well."""
    for state in ("queued", "running"):
        for job in client.get("/v1/jobs", params={"state": state}).json()["items"]:
            assert wait_for(client, job["id"], seconds)["state"] == "succeeded"


def assert_everything_opens(client: httpx.Client) -> int:
    """Every file of every job that succeeded, model, dataset and set of cards. How many jobs there were."""
    jobs, cursor = [], ""
    while cursor is not None:
        page = client.get("/v1/jobs", params={"state": "succeeded", **({"cursor": cursor} if cursor else {})}).json()
        jobs, cursor = jobs + page["items"], page["next_cursor"]
    for job in jobs:
        for file in client.get(f"/v1/jobs/{job['id']}").json()["artifacts"]:
            content = client.get(f"/v1/jobs/{job['id']}/artifacts/{file['name']}").content
            assert hashlib.sha256(content).hexdigest() == file["digest"], (job["id"], file["name"])
        if job["kind"] == "capture":
            assert client.get(f"/v1/flashcards/{job['result']['flashcards']}/sheet.png").status_code == 200
    for kind, path in (("models", "weights"), ("datasets", "file")):
        for item in client.get(f"/v1/{kind}").json()["items"]:
            content = client.get(f"/v1/{kind}/{item['id']}/{path}").content
            assert hashlib.sha256(content).hexdigest() == item["digest"]
    return len(jobs)


ROADS = [
    pytest.param("embedded", "embedded", "backup", marks=pytest.mark.slow),
    pytest.param("embedded", "servers", "backup.tar", marks=pytest.mark.slow),
    pytest.param("servers", "embedded", "backup", marks=pytest.mark.slow),
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("source", "target", "name"), ROADS)
def test_under_load_and_restored_elsewhere(source, target, name, digits_npz, tmp_path):
    path = tmp_path / name
    with open_folder() as folder, running_stack(source, folder / "old", **TEMPO) as old:
        told, long = back_up_under_load(old, digits_npz, path)
    with open_folder() as folder:
        new = STACKS[target](folder / "new", **TEMPO)
        try:
            for server in new.servers:
                server.start()
            flashcards(new, "restore", str(path), "--check")
            assert flashcards(new, "restore", str(path))["rows"] == told["rows"]
            assert_ledger_sound(new.ledger, Store(new.read_settings().store))
            new.start()
            with httpx.Client(base_url=new.url, timeout=60) as client:
                seen = assert_everything_opens(client)
                assert 1 <= seen <= told["rows"]["job"]
                if long is not None:
                    job = wait_for(client, long, seconds=400)
                    assert [attempt["outcome"] for attempt in job["attempts"]] == ["released", "succeeded"], job
                finished(client, kind="noop")
                wait_for_all(client)
            assert_ledger_sound(new.ledger, Store(new.read_settings().store))
        finally:
            new.close()
