"""`make bench-scale`: what a million jobs and two hundred watchers cost, on a real PostgreSQL, in one run.

Nothing else should run on the machine meanwhile. Everything stays on loopback and in a temporary folder.
"""

import asyncio
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

from servers import Postgres, new_database, running  # noqa: E402

from benchmarks import load  # noqa: E402
from benchmarks.service import free_port  # noqa: E402
from benchmarks.service import running as running_process  # noqa: E402
from flashcards.contract.specs import job_spec  # noqa: E402
from ledger import jobs, lifecycle  # noqa: E402
from ledger.admission import Admitted  # noqa: E402
from ledger.db import Database  # noqa: E402
from ledger.ids import new_id  # noqa: E402
from ledger.jobs import Reports  # noqa: E402
from ledger.lifecycle import Claim  # noqa: E402
from ledger.migrate import migrate  # noqa: E402
from ledger.tables import DEFAULT_TENANT  # noqa: E402

Row = tuple[str, str, str]
console = Console()

# Pages

#: Every other job is of each sort, so that a page is as long with a hundred jobs as with a million.
PAGES = {
    "page 1": "",
    "page 1, state=failed": "&state=failed",
    "page 1, kind=train": "&kind=train",
    "page 1, label=team=red": "&label=team%3Dred",
    "page 1, label=run=first (the oldest job alone)": "&label=run%3Dfirst",
}
COLUMNS = (
    "id, tenant, kind, queue, state, spec, labels, attempt, strikes, max_attempts, seq, progress, result, created_at, "
    "started_at, ended_at"
)


def bench_pages(folder: Path, many: int = 1_000_000, times: int = 100, rounds: int = 5) -> list[Row]:
    with running(Postgres(folder / "postgres")) as postgres:
        few_url, many_url = filled(postgres.url, 100), filled(postgres.url, many)
        with api(folder / "few", few_url) as (few_port, _), api(folder / "many", many_url) as (many_port, _):
            return [
                row
                for what, query in PAGES.items()
                for row in compare(what, query, many, {100: few_port, many: many_port}, times, rounds)
            ]


def compare(what: str, query: str, many: int, ports: dict[int, int], times: int, rounds: int) -> list[Row]:
    """By turns, so that whatever else the machine does hits both alike; the best round of each counts."""
    message = load.request("GET", f"/v1/jobs?limit=50{query}")
    best = dict.fromkeys(ports, float("inf"))
    for _ in range(rounds):
        for count, port in ports.items():
            one = load.median_seconds(port, message, 3)
            best[count] = min(best[count], load.median_seconds(port, message, max(3, min(times, int(2 / one)))))
    bar = "target <= 1.5x" if "label" not in what else "no bar"
    return [
        (f"{what}: of 100 jobs", f"{best[100] * 1000:.2f} ms", ""),
        (f"{what}: of {many:,} jobs", f"{best[many] * 1000:.2f} ms", ""),
        (f"{what}: ratio", f"{best[many] / best[100]:.2f}x", bar),
    ]


def filled(server_url: str, count: int) -> str:
    url = new_database(server_url, f"jobs_{count}")
    db = Database(url)
    migrate(db)
    db.close()
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.cursor() as cursor, cursor.copy(f"COPY job ({COLUMNS}) FROM STDIN") as copy:
            for number in range(count):
                copy.write_row(job_row(number))
        connection.execute("VACUUM ANALYZE job")
    return url


def job_row(number: int) -> tuple[object, ...]:
    kind = ("capture", "train")[number % 2]
    state = ("failed", "succeeded")[number // 2 % 2]
    labels = {"run": "first"} if number == 0 else {"team": ("red", "blue")[number // 4 % 2]}
    spec = {"kind": kind, "model": "model_" + "0" * 32, "labels": labels, "count": 5000, "r": 10}
    at = 1.7e9 + number
    return (
        *(new_id("job"), DEFAULT_TENANT, kind, "cpu", state, json.dumps(spec), json.dumps(labels)),
        *(1, 0, 3, 3, json.dumps({"fraction": 1.0}), json.dumps({"worker": "worker_" + "0" * 32}), at, at + 1, at + 2),
    )


@contextmanager
def api(home: Path, database_url: str) -> Iterator[tuple[int, psutil.Process]]:
    port = free_port()
    with running_process("service.api", port=port, home=home, database_url=database_url) as process:
        yield port, process


# Watchers


def bench_watchers(folder: Path, watchers: int = 200, jobs: int = 50, seconds: float = 20) -> list[Row]:
    rows = []
    with running(Postgres(folder / "postgres")) as postgres:
        urls = {"PostgreSQL": postgres.url, "SQLite": f"sqlite:///{folder / 'watched.db'}"}
        for name, url in urls.items():
            share, delivered = cost_of_watching(folder / name, url, watchers, jobs, seconds)
            bar = "target < 20 %"
            rows.append((f"{watchers} watchers of {jobs} jobs, {name}: of one core", f"{share * 100:.1f} %", bar))
            rows.append((f"{watchers} watchers of {jobs} jobs, {name}: events delivered", f"{delivered:.0f}/s", ""))
    return rows


def cost_of_watching(home: Path, url: str, watchers: int, count: int, seconds: float) -> tuple[float, float]:
    """CPU time of the API by the wall clock, while every job makes two steps a second; and events that came out."""
    db = Database(url)
    migrate(db)
    claims = [running_job(db) for _ in range(count)]
    over = threading.Event()
    steps = threading.Thread(target=make_steps, args=(db, claims, over))
    try:
        with api(home, url) as (port, process):
            steps.start()
            watch = Watchers(port, [claims[number % count].job_id for number in range(watchers)])
            return watch.measure(process, seconds)
    finally:
        over.set()
        steps.join()
        db.close()


def running_job(db: Database) -> Claim:
    spec = job_spec.validate_python({"kind": "noop"})
    with db.write() as session:
        job_id = jobs.create(session, DEFAULT_TENANT, spec, Admitted(queue="cpu", inputs=[])).id
    claim = lifecycle.claim(db, "cpu", "worker_bench", 3600, job_id)
    assert claim is not None
    return claim


def make_steps(db: Database, claims: list[Claim], over: threading.Event) -> None:
    """As a worker writes them down: one commit for a step of one job, two steps a second for each."""
    step = 0
    while not over.is_set():
        step += 1
        began = time.monotonic()
        for number, claim in enumerate(claims):
            progress = {"fraction": 0.5, "step": step, "steps": 10**6, "loss": 0.0123, "rate": 456.7, "unit": "images"}
            jobs.record(db, claim, 3600, Reports(progress=progress))
            over.wait(max(0.0, began + 0.5 * (number + 1) / len(claims) - time.monotonic()))


class Watchers:
    """Sockets that read and count; what they read is looked at no further than that."""

    def __init__(self, port: int, job_ids: list[str]) -> None:
        self._port = port
        self._job_ids = job_ids
        self._heard = 0

    def measure(self, process: psutil.Process, seconds: float) -> tuple[float, float]:
        return asyncio.run(self._measure(process, seconds))

    async def _measure(self, process: psutil.Process, seconds: float) -> tuple[float, float]:
        tasks = [asyncio.create_task(self._watch(job_id)) for job_id in self._job_ids]
        await asyncio.sleep(3)  # everybody is in, and has read what there was
        heard, used, began = self._heard, sum(process.cpu_times()[:2]), time.monotonic()
        await asyncio.sleep(seconds)
        wall = time.monotonic() - began
        share, rate = (sum(process.cpu_times()[:2]) - used) / wall, (self._heard - heard) / wall
        broken = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not broken, "a stream ended before its job"
        return share, rate

    async def _watch(self, job_id: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        try:
            while data := await reader.read(65536):
                self._heard += data.count(b"event: progress")
        finally:
            writer.close()


BENCHES = {"pages": bench_pages, "watchers": bench_watchers}


def main() -> None:
    wanted = sys.argv[1:] or list(BENCHES)
    table = Table("what", "figure", "bar", title="The service at scale, measured on this machine in this run")
    with tempfile.TemporaryDirectory() as temporary, console.status("") as status:
        Path(temporary).chmod(0o755)  # root's PostgreSQL runs as another user
        for name in wanted:
            status.update(f"measuring {name} ({wanted.index(name) + 1} of {len(wanted)})")
            folder = Path(temporary) / name
            folder.mkdir()
            for row in BENCHES[name](folder):
                table.add_row(*row)
            table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
