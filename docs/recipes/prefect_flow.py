"""Prefect 3: train, capture, learn the next task, keep it only if little was forgotten, download the weights.

    FLASHCARDS_URL=https://... FLASHCARDS_KEY=fc_... python prefect_flow.py

A task that is tried again asks for nothing twice: the id of the run is in every Idempotency-Key.
"""

import os
from pathlib import Path

import httpx
from prefect import flow, task
from prefect.runtime import flow_run

patient = {"retries": 5, "retry_delay_seconds": [2, 4, 8, 16, 32]}


def ask(method: str, path: str, step: str = "", **request) -> httpx.Response:
    key = os.environ.get("FLASHCARDS_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"Idempotency-Key": f"{flow_run.id}-{step}"} if step else {}
    url = os.environ.get("FLASHCARDS_URL", "http://127.0.0.1:8642")
    answer = httpx.request(method, url + path, headers=headers, timeout=300, **request)
    if answer.is_error:
        raise RuntimeError(answer.text)  # says what is wrong, and where
    return answer


@task(**patient)
def upload(name: str, path: str) -> str:
    with Path(path).open("rb") as file:
        return ask("POST", "/v1/datasets", name, params={"name": name}, content=file).json()["id"]


@task(**patient)
def submit(step: str, path: str, body: dict) -> str:
    return ask("POST", path, step, json=body).json()["id"]


@task(**patient)
def wait_for(job: str) -> dict:
    found = {"state": "queued"}
    while found["state"] not in ("succeeded", "failed", "cancelled"):
        found = ask("GET", f"/v1/jobs/{job}", params={"wait": 60}).json()
    return found


@task(**patient)
def download(learnt: dict, target: str) -> None:
    answer = ask("GET", f"/v1/learners/{learnt['learner']}/versions/{learnt['version']}/weights")
    Path(target).write_bytes(answer.content)


def result_of(job: str) -> dict:
    found = wait_for(job)
    if found["state"] != "succeeded":
        raise RuntimeError(f"{job} has {found['state']}: {found['error']}")
    return found["result"]


@flow
def continual(
    first: str = "/data/first.npz",
    following: str = "/data/next.npz",
    architecture: str = "blk_4_fil_32",
    epochs: int = 15,
    count: int = 5000,
    max_forgetting: float = 0.01,
    target: str = "line-7.safetensors",
) -> dict:
    training = {"kind": "train", "dataset": upload("first", first), "architecture": architecture, "epochs": epochs}
    trained = result_of(submit("train", "/v1/jobs", training))
    result_of(submit("capture", "/v1/jobs", {"kind": "capture", "model": trained["model"], "count": count}))

    learner = submit("learner", "/v1/learners", {"model": trained["model"]})
    lesson = {"dataset": upload("next", following), "epochs": epochs, "strategy": {"kind": "flashcards"}}
    learnt = result_of(submit("learn", f"/v1/learners/{learner}/tasks", lesson))

    forgot = learnt["forgetting"]
    if forgot is not None and forgot > max_forgetting:
        submit("rollback", f"/v1/learners/{learner}/rollback", {"version": learnt["base_version"]})
        raise RuntimeError(f"an earlier task became worse by {forgot:.4f}: the learner is back where it was")
    download(learnt, target)
    return learnt


if __name__ == "__main__":
    continual()
