"""`make bench-shards`: what a capture gains that two workers share, each of them pinned to one core, in one run.

The whole way counts, from the POST to the end: deciding, making, joining, measuring, and the store. The same capture is
made by one worker and by two, in turns; that both make the same file is checked as well. Nothing else should run on the
machine meanwhile. Everything stays on loopback and in a temporary folder.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

from servers import Postgres, Redis, running  # noqa: E402

from benchmarks.service import free_port, weights  # noqa: E402
from benchmarks.service import running as running_process  # noqa: E402
from flashcards.contract.architecture import BlkArchitecture  # noqa: E402
from flashcards.contract.image import ImageShape  # noqa: E402

Row = tuple[str, str, str]
WORKERS = 2
START_SECONDS = 120
console = Console()


def bench_shards(folder: Path, filters: int = 64, count: int = 8192, r: int = 10, rounds: int = 2) -> list[Row]:
    """By turns, so that whatever else the machine does hits both alike; the best round of each counts."""
    cores = sorted(os.sched_getaffinity(0))[:WORKERS]
    if len(cores) < WORKERS:
        sys.exit(f"flashcards: this takes {WORKERS} cores, and there is {len(cores)}")
    best = dict.fromkeys((1, WORKERS), float("inf"))
    digests = set()
    with service(folder, cores) as api:
        spec = {"kind": "capture", "model": push_model(api, filters), "source": "maze", "r": r}
        for shards in best:
            capture(api, spec, 64 * shards, shards)  # every worker has been through it once
        for _ in range(rounds):
            for shards in best:
                seconds, digest = capture(api, spec, count, shards)
                best[shards] = min(best[shards], seconds)
                digests.add(digest)
    assert len(digests) == 1, f"other cards in other shards: {digests}"
    what = f"{count:,} cards, r = {r}, blk_4_fil_{filters}"
    return [
        (f"{what}: one worker on one core", f"{best[1]:.1f} s", ""),
        (f"{what}: {WORKERS} workers on a core each", f"{best[WORKERS]:.1f} s", ""),
        (f"{what}: ratio", f"{best[1] / best[WORKERS]:.2f}x", "target >= 1.8x"),
    ]


@contextmanager
def service(folder: Path, cores: list[int]) -> Iterator[httpx.Client]:
    """PostgreSQL, Redis and an API where they like; a worker a core."""
    port = free_port()
    with ExitStack() as up:
        postgres, redis = (up.enter_context(running(each)) for each in (Postgres(folder / "pg"), Redis(folder / "rd")))
        places = {"home": folder / "home", "database_url": postgres.url, "broker_url": redis.url}
        up.enter_context(running_process("service.api", port=port, **places))
        for core in cores:
            up.enter_context(worker(core, **places, threads=1))
        api = up.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=90))
        wait_for_workers(api, len(cores))
        yield api


def wait_for_workers(api: httpx.Client, count: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while api.get("/readyz").json()["workers"].get("cpu") != count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} workers were started, and are not there")
        time.sleep(0.1)


@contextmanager
def worker(core: int, **settings: object) -> Iterator[None]:
    environment = {**os.environ, **{f"FLASHCARDS_{name.upper()}": str(value) for name, value in settings.items()}}
    process = subprocess.Popen(
        [sys.executable, "-m", "worker"],
        env=environment,
        preexec_fn=partial(os.sched_setaffinity, 0, {core}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def push_model(api: httpx.Client, filters: int) -> str:
    architecture, image = BlkArchitecture(blocks=4, filters=filters), ImageShape(32, 32, 3)
    params = {"name": "bench", "architecture": architecture.name, "input": str(image)}
    answer = api.post("/v1/models", params=params, content=weights(architecture, image))
    return str(answer.raise_for_status().json()["id"])


def capture(api: httpx.Client, spec: dict[str, object], count: int, shards: int) -> tuple[float, str]:
    """Seconds from the job's row to its end, by the ledger's clock; and the digest of the cards."""
    job = api.post("/v1/jobs", json={**spec, "count": count, "shards": shards}).raise_for_status().json()
    while job["state"] in ("queued", "running", "waiting"):
        job = api.get(f"/v1/jobs/{job['id']}", params={"wait": 60}).raise_for_status().json()
    assert job["state"] == "succeeded", job["error"]
    assert job["result"]["shards"] == shards, job["result"]
    began, ended = (datetime.fromisoformat(job[name]) for name in ("created_at", "ended_at"))
    return (ended - began).total_seconds(), job["result"]["cards_digest"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--filters", type=int, default=64)
    parser.add_argument("--count", type=int, default=8192)
    parser.add_argument("--r", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    table = Table("what", "figure", "bar", title="A capture in shards, measured on this machine in this run")
    with tempfile.TemporaryDirectory() as temporary, console.status("measuring"):
        Path(temporary).chmod(0o755)  # root's PostgreSQL runs as another user
        for row in bench_shards(Path(temporary), asked.filters, asked.count, asked.r, asked.rounds):
            table.add_row(*row)
    console.print(table)
    console.print("the cards are the same, to the byte")


if __name__ == "__main__":
    main()
