"""`make bench-page`: what a full ledger costs the first paint of each view, and what watchers cost a job, in one run.

The requests of a view are those that a real Chromium makes until nothing on it is loading any more; they are then
asked again, by turns of a small and of a large ledger. Everything stays on loopback and in a temporary folder.
"""

import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

from browser import running_browser  # noqa: E402
from making import npz, push_dataset, submit, wait_for  # noqa: E402
from service_process import running_service  # noqa: E402

from benchmarks import load  # noqa: E402
from benchmarks.crowd import Size, fill  # noqa: E402
from benchmarks.service import free_port, running  # noqa: E402

Row = tuple[str, str, str]
console = Console()
FEW, MANY = Size(10, 10, 10), Size(10_000, 1_000, 100)
KILOBYTES = 300
#: Nothing of the ledger is in these.
UNMOVED = ("/page/", "/readyz", "/session", "/openapi.json")
BUSY = "return document.querySelectorAll('[aria-busy=true]').length"
ASKED = """
    const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    return entries.map(({ name, initiatorType: by, decodedBodySize: size }) => ({ name, by, size }));
"""


class View(NamedTuple):
    requests: list[str]  # of the API and of the frame: what a full ledger can make slow
    kilobytes: float  # without pictures


def views(newest: dict[str, str]) -> dict[str, str]:
    return {
        "overview": "/",
        "jobs": "/jobs",
        "jobs, failed": "/jobs?state=failed",
        "job": f"/jobs/{newest['train job']}",
        "models": "/models",
        "model": f"/models/{newest['model']}",
        "datasets": "/datasets",
        "dataset": f"/datasets/{newest['dataset']}",
        "flashcards": "/flashcards",
        "cards": f"/flashcards/{newest['flashcards']}",
        "learners": "/learners",
        "learner": f"/learners/{newest['learner']}",
        "compare": "/compare",
        "api": "/api",
    }


def bench_views(folder: Path, few: Size = FEW, many: Size = MANY, times: int = 15, rounds: int = 5) -> list[Row]:
    with ExitStack() as stack:
        ports, opened = [], []
        for size in (few, many):
            home = folder / str(size.jobs)
            newest = fill(home, size)
            ports.append(port := free_port())
            stack.enter_context(running("service.api", port=port, home=home, log_level="WARNING"))
            opened.append(look(folder / f"chromium-{size.jobs}", port, newest))
        return [
            row for name in opened[0] for row in compare(name, ports, [each[name] for each in opened], times, rounds)
        ]


def look(folder: Path, port: int, newest: dict[str, str]) -> dict[str, View]:
    """A browser that has nothing kept: every byte of a view is counted."""
    found = {}
    with running_browser(folder) as driver:
        for name, path in views(newest).items():
            driver.execute_cdp_cmd("Network.clearBrowserCache", {})
            driver.get(f"http://127.0.0.1:{port}{path}")
            deadline = time.monotonic() + 60
            while driver.execute_script(BUSY):
                assert time.monotonic() < deadline, f"{name} does not come to an end"
                time.sleep(0.02)
            found[name] = as_view(driver.execute_script(ASKED), port)
    return found


def as_view(entries: list[dict[str, Any]], port: int) -> View:
    base = f"http://127.0.0.1:{port}"
    weight = sum(entry["size"] for entry in entries if entry["by"] not in ("img", "image")) / 1000
    paths = [entry["name"].removeprefix(base) for entry in entries if entry["by"] in ("navigation", "fetch")]
    return View([path for path in paths if not path.startswith(UNMOVED)], weight)


def compare(name: str, ports: list[int], found: list[View], times: int, rounds: int) -> list[Row]:
    """By turns, so that whatever else the machine does hits both alike; the best round of each counts."""
    best = [float("inf")] * 2
    for _ in range(rounds):
        for place, (port, view) in enumerate(zip(ports, found, strict=True)):
            taken = sum(load.median_seconds(port, load.request("GET", path), times) for path in view.requests)
            best[place] = min(best[place], taken)
    return [
        (f"{name}: server time, few", f"{best[0] * 1000:.1f} ms", f"{len(found[0].requests)} requests"),
        (f"{name}: server time, many", f"{best[1] * 1000:.1f} ms", f"{len(found[1].requests)} requests"),
        (f"{name}: ratio", f"{best[1] / best[0]:.2f}x", "target <= 2x"),
        (f"{name}: weight, many", f"{found[1].kilobytes:.0f} KB", f"target < {KILOBYTES} KB"),
    ]


def bench_watchers(folder: Path, watchers: int = 10, epochs: int = 40, rounds: int = 3) -> list[Row]:
    """The same training alone and watched, by turns: what the runner itself took for it."""
    with running_service(folder / "home", threads=1) as service, httpx.Client(base_url=service.url, timeout=60) as api:
        dataset = push_dataset(api, npz(**digits()))["id"]
        lesson = {"architecture": "blk_2_fil_16", "epochs": epochs, "patience": epochs, "decay": 0}
        train_for(api, service.url, dataset, 0, lesson)  # the first one pays for what comes after a start
        alone, watched = [], []
        for _ in range(rounds):
            alone.append(train_for(api, service.url, dataset, 0, lesson))
            watched.append(train_for(api, service.url, dataset, watchers, lesson))
    return [
        ("a training alone", f"{median(alone):.2f} s", ""),
        (f"the same with {watchers} watchers", f"{median(watched):.2f} s", ""),
        ("watched / alone", f"{median(watched) / median(alone):.3f}x", "target < 1.05x"),
    ]


def digits() -> dict[str, Any]:
    from sklearn.datasets import load_digits

    return {"x": (load_digits().images / 16 * 255).astype("uint8")}


def train_for(api: httpx.Client, url: str, dataset: str, watchers: int, lesson: dict[str, Any]) -> float:
    job = submit(api, kind="train", dataset=dataset, **lesson)
    if watchers:
        asyncio.run(watch_together(url, job["id"], watchers))
    ended = wait_for(api, job["id"], 600)
    assert ended["state"] == "succeeded", ended
    return float(ended["result"]["seconds"])


async def watch_together(url: str, job_id: str, watchers: int) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        await asyncio.gather(*(watch(client, job_id) for _ in range(watchers)))


async def watch(client: httpx.AsyncClient, job_id: str) -> None:
    """What the view of a job asks for: the events, the curves again as they grow, the job now and then."""
    metrics_at = job_at = 0.0
    async with client.stream("GET", f"/v1/jobs/{job_id}/events") as answer:
        async for _ in answer.aiter_lines():
            now = time.monotonic()
            if now - metrics_at > 1.5:
                metrics_at = now
                await client.get(f"/v1/jobs/{job_id}/metrics")
            if now - job_at > 4:
                job_at = now
                await asyncio.gather(client.get(f"/v1/jobs/{job_id}"), client.get("/readyz"))


BENCHES = {"views": bench_views, "watchers": bench_watchers}


def main() -> None:
    wanted = sys.argv[1:] or list(BENCHES)
    table = Table("what", "figure", "bar", title="The page, measured on this machine in this run")
    with tempfile.TemporaryDirectory() as temporary, console.status("") as status:
        for name in wanted:
            status.update(f"measuring {name} ({wanted.index(name) + 1} of {len(wanted)})")
            for row in BENCHES[name](Path(temporary) / name):
                table.add_row(*row)
            table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
