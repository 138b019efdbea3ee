"""The client: posts jobs all the time, asks again when it gets no answer, cancels some, and knows what to expect."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx
import numpy as np
from making import npz
from patient import Defect, Patient
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from stack import Stack

from ledger.steps import TERMINAL
from ledger.tables import Job
from tests.chaos.state import State, Wanted

PATIENCE_SECONDS = 180
CANCELLED_SHARE = 0.15
ASKED_TWICE_SHARE = 0.2
KINDS = {"train": 5, "capture": 3, "evaluate": 2, "predict": 2, "noop": 3}
LONG_RUN = 20  # kills; shorter runs have fewer and smaller jobs, to be over sooner

#: Some seconds long, with a resume point every few hundred milliseconds.
TRAINING = {"kind": "train", "architecture": "blk_2_fil_8", "patience": 15, "batch_size": 32}
CAPTURE = {"kind": "capture", "count": 2000, "r": 5}


def images() -> bytes:
    from sklearn.datasets import load_digits

    found = load_digits()
    return npz(x_train=(found.images[:1000] / 16 * 255).astype(np.uint8))


@dataclass
class Stream:
    stack: Stack
    state: State
    complain: Callable[[str], None]

    def __post_init__(self) -> None:
        self._patient = Patient(PATIENCE_SECONDS)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_posting, name="client", daemon=True)
        self._cancel_at: dict[str, float] = {}
        long = self.state.kills >= LONG_RUN
        self.variants, self.backlog, self.epochs = (2, 5, 15) if long else (1, 3, 8)

    # Before the troubles

    def prepare(self) -> None:
        """Upload, and run every kind of job once in peace: later ones must give the same to the last bit."""
        state = self.state
        if state.expected:
            return
        query = "/v1/datasets?name=digits"
        state.inputs["dataset"] = self._ask("POST", query, "digits", content=images()).json()["id"]
        for variant in range(self.variants):
            job = self._in_peace("train", variant)
            state.expected[f"train-{variant}"] = outcome_of(job)
            state.inputs.setdefault("model", job["result"]["model"])
        for variant in range(self.variants):
            state.expected[f"capture-{variant}"] = outcome_of(self._in_peace("capture", variant))
        for kind in ("evaluate", "predict"):
            state.expected[f"{kind}-0"] = outcome_of(self._in_peace(kind, 0))

    def _in_peace(self, kind: str, variant: int) -> dict[str, Any]:
        body = {**self.body(kind, variant), "labels": {"chaos": f"peace-{kind}-{variant}"}}
        job_id = self._ask("POST", "/v1/jobs", f"peace-{kind}-{variant}", json=body).json()["id"]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            job: dict[str, Any] = self._ask("GET", f"/v1/jobs/{job_id}?wait=20").json()
            if job["state"] in TERMINAL:
                if job["state"] != "succeeded" or len(job["attempts"]) != 1:
                    raise RuntimeError(f"an unbroken run was broken: {job}")
                return job
        raise TimeoutError(job_id)

    def body(self, kind: str, variant: int) -> dict[str, Any]:
        inputs = self.state.inputs
        bodies = {
            "train": lambda: {**TRAINING, "epochs": self.epochs, "dataset": inputs["dataset"], "seed": variant},
            "capture": lambda: {**CAPTURE, "model": inputs["model"], "seed": variant},
            "evaluate": lambda: {"kind": "evaluate", "model": inputs["model"], "dataset": inputs["dataset"]},
            "predict": lambda: {"kind": "predict", "model": inputs["model"], "dataset": inputs["dataset"]},
            "noop": lambda: {"kind": "noop"},
        }
        return {**bodies[kind](), "max_attempts": 20}

    # While there is trouble

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def close(self) -> None:
        self._patient.close()

    def _keep_posting(self) -> None:
        try:
            while not self._over.wait(0.2):
                self.step(post=True)
        except Exception as error:
            self.complain(f"the client gave up: {error!r}")

    def step(self, *, post: bool) -> None:
        states = self.states()
        if states is None:
            return
        self._cancel_some()
        self._retry_what_found_no_room(states)
        unanswered = [wanted for wanted in self.state.jobs if wanted.id is None]
        for wanted in unanswered:
            self._post(wanted)
        if post and sum(row.state not in TERMINAL for row in states) < self.backlog:
            wanted = self._next()
            self.state.jobs.append(wanted)
            self._post(wanted)

    def states(self) -> list[Any] | None:
        """All jobs, from the record itself; None while it is away."""
        try:
            with self.stack.ledger.read() as session:
                return list(session.execute(select(Job.id, Job.state, Job.error)))
        except DBAPIError:
            return None

    def is_over(self) -> bool:
        """Everything wanted was accepted, and everything accepted has ended."""
        states = self.states()
        if states is None or any(wanted.id is None for wanted in self.state.jobs):
            return False
        return all(row.state in TERMINAL and not _found_no_room(row) for row in states)

    def _next(self) -> Wanted:
        number = len(self.state.jobs)
        chance = Random(f"{self.state.seed}:job:{number}")
        (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
        variant = chance.randrange(self.variants) if kind in ("train", "capture") else 0
        cancel = kind in ("train", "capture") and chance.random() < CANCELLED_SHARE
        return Wanted(number, kind, variant, cancel)

    def _post(self, wanted: Wanted) -> None:
        body = {**self.body(wanted.kind, wanted.variant), "labels": {"chaos": str(wanted.number)}}
        key = f"job-{wanted.number}"
        wanted.id = self._ask("POST", "/v1/jobs", key, json=body).json()["id"]
        chance = Random(f"{self.state.seed}:again:{wanted.number}")
        if chance.random() < ASKED_TWICE_SHARE:
            again = self._ask("POST", "/v1/jobs", key, json=body).json()["id"]
            if again != wanted.id:
                self.complain(f"one key, two jobs: {wanted.id} and {again}")
        if wanted.cancel:
            self._cancel_at[wanted.id] = time.monotonic() + chance.uniform(0, 6)

    def _cancel_some(self) -> None:
        for job_id, at in list(self._cancel_at.items()):
            if time.monotonic() >= at:
                del self._cancel_at[job_id]
                answer = self._ask("POST", f"/v1/jobs/{job_id}/cancel", f"cancel-{job_id}")
                if answer.status_code not in (202, 409):
                    self.complain(f"cancel of {job_id}: {answer.status_code} {answer.text}")

    def _retry_what_found_no_room(self, states: list[Any]) -> None:
        for row in states:
            if _found_no_room(row):
                self.state.retried += 1
                self._ask("POST", f"/v1/jobs/{row.id}/retry", f"retry-{row.id}-{self.state.retried}")

    def _ask(self, method: str, path: str, key: str | None = None, **request: Any) -> httpx.Response:
        before = self._patient.asked_again
        while True:
            try:
                return self._patient.ask(
                    method, f"{self.stack.url}{path}", key and f"{self.state.seed}-{key}", **request
                )
            except Defect as defect:
                self.complain(str(defect))
                time.sleep(1)
            finally:
                self.state.asked_again += self._patient.asked_again - before
                before = self._patient.asked_again


def _found_no_room(row: Any) -> bool:
    return row.state == "failed" and row.error["type"] == "disk-full"


def outcome_of(job: dict[str, Any]) -> Any:
    """What must be the same each time: the bytes of what was made, or the figures."""
    digests = {artifact["name"]: artifact["digest"] for artifact in job["artifacts"]}
    match job["kind"]:
        case "train":
            return digests["model.safetensors"]
        case "capture":
            return digests["cards.npy"]
        case "predict":
            return digests["reconstructions.npy"]
        case "evaluate":
            return [job["result"][name] for name in ("mae", "psnr", "ssim")]
    return None
