"""A deploy: two APIs and two workers are restarted one after the other under load, and no client notices."""

import json
import signal
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from making import weights
from patient import Patient
from servers import open_folder
from soundness import assert_ledger_sound
from sqlalchemy import select
from stack import Stack, running_stack

from flashcards import Client
from flashcards.contract.resources import TERMINAL_STATES
from ledger.store import Store
from ledger.tables import Job

CLIENTS = 4
TRAINING = {"kind": "train", "architecture": "blk_2_fil_8", "epochs": 30, "patience": 30, "batch_size": 32}


@pytest.fixture
def stack():
    with open_folder() as folder, running_stack("servers", folder, lease_seconds=20) as running:
        yield running


class User(threading.Thread):
    """Uploads, downloads, queues jobs and watches them, with the client that everybody has."""

    def __init__(self, url: str, over: threading.Event, folder: Path) -> None:
        super().__init__()
        self.url, self.over, self.folder = url, over, folder
        self.accepted: list[str] = []
        self.failure = ""
        folder.mkdir()

    def run(self) -> None:
        try:
            self.use()
        except BaseException as failure:
            self.failure = "".join(traceback.format_exception(failure))

    def use(self) -> None:
        with Client(self.url) as client:
            while not self.over.is_set():
                self.one_round(client)

    def one_round(self, client: Client) -> None:
        job = client.submit({"kind": "noop"})
        self.accepted.append(job.id)
        assert [event.data["state"] for event in client.jobs.events(job.id)] == ["queued", "running", "succeeded"]
        assert client.jobs.wait(job.id, timeout=60).state == "succeeded"
        assert client.jobs.list(limit=5).items
        ours = self.folder / "ours.safetensors"
        ours.write_bytes(weights(seed=len(self.accepted)))
        model = client.models.push(ours, name="net", architecture="blk_2_fil_4", input="16x16x1")
        theirs = client.models.weights(model.id, self.folder / "theirs.safetensors")
        assert theirs.read_bytes() == ours.read_bytes()
        client.models.delete(model.id)


class Script(User):
    """Somebody with nothing but HTTP, who asks again with the same key, as curl --retry does."""

    def use(self) -> None:
        patient = Patient(seconds=60)
        try:
            while not self.over.is_set():
                key = f"script-{len(self.accepted)}"
                answer = patient.ask("POST", f"{self.url}/v1/jobs", key, json={"kind": "noop"})
                assert answer.status_code == 202, answer.text
                self.accepted.append(answer.json()["id"])
                assert self.ended(patient, self.accepted[-1])["state"] == "succeeded"
        finally:
            patient.close()

    def ended(self, patient: Patient, job_id: str) -> dict[str, Any]:
        """Asks until the state is an end: an API that closes answers those who wait at once, with the state so far."""
        deadline = time.monotonic() + 20
        while True:
            left = max(0.0, deadline - time.monotonic())
            job = patient.ask("GET", f"{self.url}/v1/jobs/{job_id}", params={"wait": left}).json()
            if job["state"] in TERMINAL_STATES:
                return job
            assert time.monotonic() < deadline, job


def times_run(stack: Stack) -> Counter[str]:
    lines = (line for line in stack.log_text().splitlines() if '"noop.ran"' in line)
    return Counter(json.loads(line)["job"] for line in lines)


def states_of(stack: Stack, ids: list[str]) -> Counter[str]:
    with stack.ledger.read() as session:
        return Counter(session.scalars(select(Job.state).where(Job.id.in_(ids))))


def restart_one_after_the_other(stack) -> None:
    for part in stack.keeper.parts:
        starts = part.starts
        part.send(signal.SIGTERM)
        while part.starts == starts:
            time.sleep(0.05)
        stack.wait_until_ready()
        time.sleep(1)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_client_with_retries_sees_no_failure(stack, digits_npz, tmp_path):
    path = tmp_path / "digits.npz"
    path.write_bytes(digits_npz)
    with Client(stack.url) as client:
        images = client.datasets.push(path)
        unbroken = client.jobs.wait(client.submit({**TRAINING, "dataset": images.id}).id)
        long = client.submit({**TRAINING, "dataset": images.id, "epochs": 5000, "patience": 5000, "max_attempts": 1})

        over = threading.Event()
        kinds = [User] * CLIENTS + [Script]
        users = [kind(stack.url, over, tmp_path / f"user-{n}") for n, kind in enumerate(kinds)]
        for user in users:
            user.start()
        restart_one_after_the_other(stack)
        over.set()
        for user in users:
            user.join()
        failures = [user.failure for user in users if user.failure]
        assert not failures, "\n".join(failures)
        assert min(len(user.accepted) for user in users) >= 3
        accepted = [job_id for user in users for job_id in user.accepted]
        assert states_of(stack, accepted) == Counter(succeeded=len(accepted))
        assert times_run(stack) == Counter(accepted)

        client.jobs.cancel(long.id)
        outcomes = [attempt.outcome for attempt in client.jobs.wait(long.id).attempts]
        assert set(outcomes[:-1]) == {"released"}
        again = client.jobs.wait(client.submit({**TRAINING, "dataset": images.id}).id)
        assert [file.digest for file in again.artifacts] == [file.digest for file in unbroken.artifacts]
    assert_ledger_sound(stack.ledger, Store(stack.read_settings().store))
