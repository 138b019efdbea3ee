"""`make bench-service`: the service against the plainest thing that could do the same, in one run, as ratios.

Nothing else should run on the machine meanwhile. Everything stays on loopback and in a temporary folder.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import httpx
import numpy as np
import psutil
from rich.console import Console
from rich.table import Table
from safetensors.numpy import save
from sqlalchemy import insert

from benchmarks import load
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape
from ledger.db import Database
from ledger.ids import new_id
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Job

console = Console()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(*command: str, port: int, **settings: object) -> Iterator[psutil.Process]:
    environment = {**os.environ, **{f"FLASHCARDS_{name.upper()}": str(value) for name, value in settings.items()}}
    process = subprocess.Popen(
        [sys.executable, "-m", *command], env={**environment, "FLASHCARDS_PORT": str(port)}, stdout=subprocess.DEVNULL
    )
    try:
        wait_until_up(port, "/readyz" if "service.api" not in command else "/healthz")
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def wait_until_up(port: int, path: str) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(path)


def weights(architecture: BlkArchitecture, image: ImageShape) -> bytes:
    chance = np.random.default_rng(0)
    shapes = architecture.tensors(image)
    return save({name: (chance.normal(size=shape) * 0.05).astype(np.float32) for name, shape in shapes})


def push_model(api: httpx.Client) -> str:
    architecture, image = BlkArchitecture(blocks=2, filters=8), ImageShape(16, 16, 1)
    params = {"name": "bench", "architecture": architecture.name, "input": str(image)}
    answer = api.post("/v1/models", params=params, content=weights(architecture, image))
    return str(answer.raise_for_status().json()["id"])


def first_step(api: httpx.Client, model: str) -> float:
    """From the job's row to the first progress that the engine reported, by the ledger's clock."""
    spec = {"kind": "capture", "model": model, "count": 8, "r": 2}
    job = api.post("/v1/jobs", json=spec).raise_for_status().json()
    job = api.get(f"/v1/jobs/{job['id']}", params={"wait": 30}).json()
    assert job["state"] == "succeeded", job
    events = api.get(f"/v1/jobs/{job['id']}/events", params={"follow": False}).json()
    began = next(event["at"] for event in events if event["kind"] == "progress")
    return (datetime.fromisoformat(began) - datetime.fromisoformat(job["created_at"])).total_seconds()


def bench_first_step(
    folder: Path, warm_jobs: int = 15, cold_jobs: int = 5, rest: float = 6
) -> list[tuple[str, str, str]]:
    port = free_port()
    with (
        running("service", port=port, home=folder / "latency") as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as api,
    ):
        model = push_model(api)
        warm, cold = [], []
        for _ in range(warm_jobs):
            time.sleep(rest)  # an idle service: the nursery is warm
            warm.append(first_step(api, model))
        for _ in range(cold_jobs):
            time.sleep(rest / 2)
            for child in process.children(recursive=True):
                if child.cmdline()[-1] == "worker.runner":
                    child.kill()
            cold.append(first_step(api, model))
    middle = statistics.median(warm)
    return [
        (
            f"POST of a tiny capture to its first engine step, warm (median of {warm_jobs})",
            f"{middle:.3f} s",
            "target < 0.5 s",
        ),
        (f"the same with the nursery killed (median of {cold_jobs})", f"{statistics.median(cold):.3f} s", ""),
        ("cold / warm", f"{statistics.median(cold) / middle:.1f}x", ""),
    ]


def bench_upload(folder: Path, mebibytes: int = 1024, times: int = 3) -> list[tuple[str, str, str]]:
    source, copy = folder / "gigabyte", folder / "copy"
    with source.open("wb") as file:
        for _ in range(mebibytes):
            file.write(os.urandom(1024**2))
    port = free_port()
    yardsticks, uploads = [], []
    with running("service.api", port=port, home=prepared(folder / "upload")):
        for _ in range(times):
            started = time.perf_counter()
            subprocess.run(
                f"cat {source} > {copy} && sha256sum {copy}", shell=True, check=True, stdout=subprocess.DEVNULL
            )
            yardsticks.append(time.perf_counter() - started)
            copy.unlink()
            started = time.perf_counter()
            # The bytes are no npz: what is timed is receiving, counting, hashing and writing them, then the refusal.
            url = f"http://127.0.0.1:{port}/v1/datasets?name=x"
            command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-T", str(source), url]
            answer = subprocess.run(command, check=True, capture_output=True, text=True)
            assert answer.stdout == "422", answer.stdout
            uploads.append(time.perf_counter() - started)
    yardstick, upload, size = min(yardsticks), min(uploads), mebibytes * 1024**2
    return [
        (f"cat + sha256sum of {mebibytes} MiB (best of {times})", f"{size / yardstick / 1e6:.0f} MB/s", ""),
        (f"upload of {mebibytes} MiB (best of {times})", f"{size / upload / 1e6:.0f} MB/s", ""),
        ("upload / (cat + sha256sum)", f"{yardstick / upload:.2f}", "target >= 0.5"),
    ]


def prepared(home: Path) -> Path:
    home.mkdir(parents=True)
    db = Database(Settings(home=home).database)
    migrate(db)
    db.close()
    return home


def bench_posts(folder: Path, seconds: float = 4, times: int = 3) -> list[tuple[str, str, str]]:
    ours, bare = free_port(), free_port()
    home = prepared(folder / "posts")
    with (
        running("service.api", port=ours, home=home),
        running("benchmarks.bare", str(bare), str(folder / "bare.db"), port=bare),
    ):
        with httpx.Client(base_url=f"http://127.0.0.1:{ours}") as api:
            model = push_model(api)
        body = json.dumps({"kind": "capture", "model": model, "count": 100, "r": 10}).encode()
        rates = {"bare": 0.0, "ours": 0.0}
        for _ in range(times):
            rates["bare"] = max(rates["bare"], load.rate(bare, load.request("POST", "/rows", body), 202, seconds, 4))
            rates["ours"] = max(rates["ours"], load.rate(ours, load.request("POST", "/v1/jobs", body), 202, seconds, 4))
    return [
        (f"bare FastAPI route that commits one row (best of {times})", f"{rates['bare']:.0f}/s", ""),
        (f"POST /v1/jobs (best of {times})", f"{rates['ours']:.0f}/s", ""),
        ("POST /v1/jobs / bare route", f"{rates['ours'] / rates['bare']:.2f}", "target >= 0.5"),
    ]


def fill(home: Path, count: int) -> None:
    db = Database(Settings(home=home).database)
    spec = {"kind": "capture", "model": "model_" + "0" * 32}
    row = {
        "tenant": DEFAULT_TENANT,
        "kind": "capture",
        "queue": "cpu",
        "state": "succeeded",
        "spec": spec,
        "labels": {},
        "attempt": 1,
        "strikes": 0,
        "max_attempts": 3,
        "seq": 1,
        "progress": {"fraction": 1.0},
    }
    with db.write() as session:
        for start in range(0, count, 5000):
            some = range(min(5000, count - start))
            session.execute(insert(Job), [{**row, "id": new_id("job"), "created_at": time.time()} for _ in some])
    db.close()


def bench_pages(folder: Path, many: int = 100_000, times: int = 300) -> list[tuple[str, str, str]]:
    seconds = {}
    for count in (100, many):
        home = prepared(folder / f"pages-{count}")
        fill(home, count)
        port = free_port()
        with running("service.api", port=port, home=home):
            message = load.request("GET", "/v1/jobs?limit=50")
            load.median_seconds(port, message, 50)
            seconds[count] = load.median_seconds(port, message, times)
    ratio = seconds[many] / seconds[100]
    return [
        (f"page 1 of 100 jobs (median of {times})", f"{seconds[100] * 1000:.2f} ms", ""),
        (f"page 1 of {many:,} jobs (median of {times})", f"{seconds[many] * 1000:.2f} ms", ""),
        (f"{many:,} / 100", f"{ratio:.2f}x", "target <= 2x"),
    ]


def bench_start(folder: Path) -> list[tuple[str, str, str]]:
    home, port = prepared(folder / "start"), free_port()
    started = time.perf_counter()
    with running("service.api", port=port, home=home) as process:
        up = time.perf_counter() - started
        time.sleep(1)
        resident = process.memory_info().rss
    return [
        ("start of the API to its first /healthz", f"{up:.2f} s", "gate < 2 s"),
        ("memory of the idle API", f"{resident / 1e6:.0f} MB", "gate < 150 MB"),
    ]


BENCHES = {
    "start": bench_start,
    "first-step": bench_first_step,
    "upload": bench_upload,
    "posts": bench_posts,
    "pages": bench_pages,
}


def main() -> None:
    wanted = sys.argv[1:] or list(BENCHES)
    table = Table("what", "figure", "bar", title="The service, measured on this machine in this run")
    with tempfile.TemporaryDirectory() as temporary, console.status("") as status:
        for name in wanted:
            status.update(f"measuring {name} ({wanted.index(name) + 1} of {len(wanted)})")
            for row in BENCHES[name](Path(temporary)):
                table.add_row(*row)
            table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
