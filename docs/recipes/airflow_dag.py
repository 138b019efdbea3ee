"""Airflow 3: train, capture, learn the next task, keep it only if little was forgotten, download the weights.

Put this file into the folder of your DAGs. FLASHCARDS_URL and FLASHCARDS_KEY come from the environment of the workers.
A task that is tried again asks for nothing twice: the name of the run is in every Idempotency-Key. While a job runs, no
worker of Airflow is held: the sensor looks every half minute.
"""

import os
from datetime import datetime, timedelta
from pathlib import Path

import httpx
from airflow.sdk import PokeReturnValue, dag, task


def ask(method: str, path: str, once: str = "", **request) -> httpx.Response:
    key = os.environ.get("FLASHCARDS_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"Idempotency-Key": once} if once else {}
    url = os.environ.get("FLASHCARDS_URL", "http://127.0.0.1:8642")
    answer = httpx.request(method, url + path, headers=headers, timeout=300, **request)
    if answer.is_error:
        raise RuntimeError(answer.text)  # says what is wrong, and where
    return answer


@task
def upload(name: str, path: str, run_id: str | None = None) -> str:
    with Path(path).open("rb") as file:
        return ask("POST", "/v1/datasets", f"{run_id}-{name}", params={"name": name}, content=file).json()["id"]


@task
def train(dataset: str, architecture: str, epochs: int, run_id: str | None = None) -> str:
    spec = {"kind": "train", "dataset": dataset, "architecture": architecture, "epochs": epochs}
    return ask("POST", "/v1/jobs", f"{run_id}-train", json=spec).json()["id"]


@task
def capture(trained: dict, count: int, run_id: str | None = None) -> str:
    spec = {"kind": "capture", "model": trained["model"], "count": count}
    return ask("POST", "/v1/jobs", f"{run_id}-capture", json=spec).json()["id"]


@task
def learn(trained: dict, dataset: str, epochs: int, run_id: str | None = None) -> str:
    learner = ask("POST", "/v1/learners", f"{run_id}-learner", json={"model": trained["model"]}).json()["id"]
    spec = {"dataset": dataset, "epochs": epochs, "strategy": {"kind": "flashcards"}}
    return ask("POST", f"/v1/learners/{learner}/tasks", f"{run_id}-learn", json=spec).json()["id"]


@task.sensor(poke_interval=30, timeout=24 * 3600, mode="reschedule")
def wait_for(job: str) -> PokeReturnValue:
    found = ask("GET", f"/v1/jobs/{job}", params={"wait": 10}).json()
    if found["state"] in ("failed", "cancelled"):
        raise RuntimeError(f"{job} has {found['state']}: {found['error']}")
    return PokeReturnValue(is_done=found["state"] == "succeeded", xcom_value=found["result"])


@task
def check(learnt: dict, max_forgetting: float, run_id: str | None = None) -> dict:
    forgot = learnt["forgetting"]
    if forgot is not None and forgot > max_forgetting:
        back = {"version": learnt["base_version"]}
        ask("POST", f"/v1/learners/{learnt['learner']}/rollback", f"{run_id}-rollback", json=back)
        raise RuntimeError(f"an earlier task became worse by {forgot:.4f}: the learner is back at {back}")
    return learnt


@task
def download(learnt: dict, target: str) -> str:
    answer = ask("GET", f"/v1/learners/{learnt['learner']}/versions/{learnt['version']}/weights")
    Path(target).write_bytes(answer.content)
    return target


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 3, "retry_delay": timedelta(seconds=30)},
)
def continual(
    first: str = "/data/first.npz",
    following: str = "/data/next.npz",
    architecture: str = "blk_4_fil_32",
    epochs: int = 15,
    count: int = 5000,
    max_forgetting: float = 0.01,
    target: str = "/models/line-7.safetensors",
):
    trained = wait_for(train(upload("first", first), architecture, epochs))
    wait_for(capture(trained, count))
    learnt = wait_for(learn(trained, upload("next", following), epochs))
    download(check(learnt, max_forgetting), target)


continual()
