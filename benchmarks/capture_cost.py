"""`make bench-capture-cost`: what a capture costs through the API, over the same engine call made directly.

Through the API: from the POST until a client that waits sees the job succeeded. That is queue, staging, a runner, the
engine, hashing, the store and the record. Directly: the engine in a process that has torch imported and has made cards
before. Both have the same spec, threads and environment, and take turns, so that whatever else the machine does hits
both alike.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.service import free_port, running, weights
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape
from worker.child import runner_environment

IMAGE = ImageShape(32, 32, 3)
NOBODY = f"model_{'0' * 32}"
WARM_UP = {"count": 64, "r": 1}
DEAREST = 1.1  # times the direct call

console = Console()


@dataclass(frozen=True)
class Round:
    through_api: float  # seconds
    directly: float
    processor: tuple[float, float]  # seconds of all processes of either side
    backends: tuple[str, str]
    digests: tuple[str, str]  # of the cards: from one backend they are the same

    @property
    def ratio(self) -> float:
        return self.through_api / self.directly


def measure(architecture: str, count: int, r: int, rounds: int, threads: int, rest: float = 2.0) -> list[Round]:
    spec = {"kind": "capture", "source": "maze", "dtype": "float32"}
    asked = {**spec, "count": count, "r": r}
    network = weights(architecture_spec.validate_python(architecture), IMAGE)
    port, found = free_port(), []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "model.safetensors").write_bytes(network)
        with (
            running("service", port=port, home=folder / "home", threads=threads) as service,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=90) as api,
            direct_child(folder, architecture, threads) as child,
        ):
            model = push(api, architecture, network)
            through_api(api, {**spec, **WARM_UP, "model": model})
            child.capture({**spec, **WARM_UP})
            for number in range(rounds):
                before = processor_seconds(service), processor_seconds(child.process)
                turns = {
                    "api": lambda: through_api(api, {**asked, "model": model}),
                    "engine": lambda: child.capture(asked),
                }
                took = {}
                # In turn the first: a machine that slows down under load would always be slower for the second.
                for name in list(turns)[:: -1 if number % 2 else 1]:
                    time.sleep(rest)  # what the last job left to tidy is done
                    took[name] = turns[name]()
                (api_seconds, api_result), (seconds, result) = took["api"], took["engine"]
                spent = processor_seconds(service) - before[0], processor_seconds(child.process) - before[1]
                backends = (api_result["recipe"]["backend"], result["recipe"]["backend"])
                digests = (api_result["cards_digest"], result["cards_digest"])
                found.append(Round(api_seconds, seconds, spent, backends, digests))
                console.print(f"round {len(found)}: {api_seconds:.2f} s over {seconds:.2f} s")
    return found


def push(api: httpx.Client, architecture: str, network: bytes) -> str:
    params = {"name": "bench", "architecture": architecture, "input": str(IMAGE)}
    return str(api.post("/v1/models", params=params, content=network).raise_for_status().json()["id"])


def through_api(api: httpx.Client, spec: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    job = api.post("/v1/jobs", json=spec).raise_for_status().json()
    while job["state"] in ("queued", "running"):
        job = api.get(f"/v1/jobs/{job['id']}", params={"wait": 60}).raise_for_status().json()
    seconds = time.perf_counter() - began
    assert job["state"] == "succeeded", job
    return seconds, job["result"]


def processor_seconds(top: psutil.Process) -> float:
    """Of this process and all below it, those that have ended as well."""
    times = [process.cpu_times() for process in (top, *top.children(recursive=True))]
    return sum(each.user + each.system + each.children_user + each.children_system for each in times)


class Direct:
    """The other side of `make_cards`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = psutil.Process(process.pid)
        self.questions, self.answers = process.stdin, process.stdout

    def capture(self, spec: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        began = time.perf_counter()
        self.questions.write(json.dumps(spec) + "\n")
        self.questions.flush()
        answer = self.answers.readline()
        return time.perf_counter() - began, json.loads(answer)


@contextmanager
def direct_child(folder: Path, architecture: str, threads: int) -> Iterator[Direct]:
    command = [sys.executable, "-m", "benchmarks.capture_cost", "--direct", str(folder)]
    with subprocess.Popen(
        [*command, "--architecture", architecture, "--threads", str(threads)],
        env=runner_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Direct(process)


def make_cards(folder: Path, architecture: str, threads: int) -> None:
    """A spec a line comes in, its result goes out; the end of the input is the end."""
    from benchmarks.lab import Quiet
    from engine.run import run
    from engine.warm import warm_up
    from engine.work import ModelInput, Work
    from flashcards.contract.specs import job_spec

    warm_up()
    path, out = folder / "model.safetensors", folder / "direct"
    model = ModelInput(
        path=path,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        architecture=architecture_spec.validate_python(architecture),
        input=IMAGE,
        range=(0.0, 1.0),
    )
    for line in sys.stdin:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        spec = job_spec.validate_python({**json.loads(line), "model": NOBODY})
        outcome = run(Work(spec=spec, out=out, model=model, threads=threads), Quiet(), lambda: False)
        print(outcome.result.model_dump_json(), flush=True)


def show(found: list[Round]) -> float:
    ratio = statistics.median(each.ratio for each in found)
    table = Table("round", "through the API", "directly", "ratio", "processor", "made with")
    for number, each in enumerate(found, 1):
        made_with = " / ".join(sorted(set(each.backends)))
        cells = (f"{each.through_api:.2f} s", f"{each.directly:.2f} s", f"{each.ratio:.3f}")
        processor = f"{each.processor[0]:.1f} s / {each.processor[1]:.1f} s"
        table.add_row(str(number), *cells, processor, made_with)
    console.print(table)
    load = os.getloadavg()[0]
    console.print(f"ratio {ratio:.3f} (median of {len(found)}), gate <= {DEAREST}; load of the machine {load:.1f}")
    return ratio


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture_cost", description=__doc__)
    parser.add_argument("--architecture", default="blk_4_fil_32", help="blk_4_fil_64 is the paper's")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--r", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--direct", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.direct:
        make_cards(asked.direct, asked.architecture, asked.threads)
        return 0
    found = measure(asked.architecture, asked.count, asked.r, asked.rounds, asked.threads)
    return 0 if show(found) <= DEAREST else 1


if __name__ == "__main__":
    raise SystemExit(main())
