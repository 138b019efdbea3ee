"""`make bench-mlflow`: what a tracking server that is killed in the middle costs the job that it was told of.

Trainings in threes, in turn: two with the server there, and between them one in whose middle it is killed with all
its processes. The two against each other say how far apart equal jobs are on this machine; the third against them is
the figure. After each it is started again, and has to know everything that it missed, once.

The server stands for one on another machine: it has a core of its own, and the service with worker and runner another,
where there are two. On a shared machine the same steps over the same images take ten per cent more or less from one
time to the next, which hides 2 %. So the processor time of the runner is set apart: it does the same whatever becomes
of the server. So is the time that the host took the core away ("steal"). What a dead server could cost is the rest of
the job's time, which is waiting, and the work of others on that core. The change of this rest, as a share of the whole,
is what the gate is held against; that of the whole is printed beside it. It holds where the whole range lies within it
that the median is in 19 times of 20: a machine that is too noisy to tell 2 % says so, and does not pass.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import comb
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import httpx
import psutil
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

from making import npz, push_dataset, submit  # noqa: E402
from servers import running  # noqa: E402
from service_process import ServiceProcess, running_service  # noqa: E402
from tracking import MlflowServer, run_of  # noqa: E402

Row = tuple[str, str, str]
console = Console()
GATE = 0.02
ENDED = ("succeeded", "failed", "cancelled")
ARRIVES_SECONDS = 600
LOOK_SECONDS = 1.0  # who looks more often takes a part of the core that is measured


def images() -> bytes:
    found = load_digits()
    pixels = (found.images / 16 * 255).astype("uint8")
    return npz(x_train=pixels[:1500], x_test=pixels[1500:])


@dataclass(frozen=True)
class Timed:
    seconds: float  # from its claim to its end, by the record
    runner: float  # of them, processor time of its runner
    stolen: float = 0.0  # and those that the host gave to others

    @property
    def rest(self) -> float:
        return self.seconds - self.runner - self.stolen


@dataclass(frozen=True)
class Three:
    """Two jobs with the server there, and the one between them in which it was killed."""

    first: Timed
    broken: Timed
    second: Timed

    @property
    def plain(self) -> float:
        return (self.first.seconds + self.second.seconds) / 2

    @property
    def equal(self) -> float:
        """What equal jobs take, over each other."""
        return self.second.seconds / self.first.seconds

    @property
    def whole(self) -> float:
        return self.broken.seconds / self.plain

    @property
    def changed(self) -> float:
        """By what the server has multiplied the time of the job, the runner's own computing left as it is."""
        return 1 + (self.broken.rest - (self.first.rest + self.second.rest) / 2) / self.plain


class Ground(NamedTuple):
    service: ServiceProcess
    core: int | None  # that it has for itself
    api: httpx.Client
    server: MlflowServer


class Trial:
    """A service, its tracking server, and one kind of job."""

    def __init__(self, ground: Ground, epochs: int) -> None:
        self.service, self.core, api, server = ground
        self.api, self.server = api, server
        dataset = push_dataset(api, images())["id"]
        self.spec = {"kind": "train", "dataset": dataset, "architecture": "blk_2_fil_16", "learning_rate": 0.005}
        self.spec |= {"epochs": epochs, "patience": epochs, "decay": 0.0}

    def timed(self, at_half: Callable[[], None] = lambda: None) -> Timed:
        """Looked at equally often whatever happens to the server."""
        (nursery,) = self.service.parts("worker.runner")  # while nothing runs
        before, stolen = _of_the_buried(nursery), _stolen(self.core)
        job_id, halved = submit(self.api, **self.spec)["id"], False
        while (job := self.api.get(f"/v1/jobs/{job_id}").json())["state"] not in ENDED:
            if not halved and job["progress"]["fraction"] > 0.4:
                halved = True
                at_half()
            time.sleep(LOOK_SECONDS)
        stolen = _stolen(self.core) - stolen
        assert job["state"] == "succeeded", job["error"]
        self._wait_for(job_id)
        runner = _of_the_buried(nursery) - before
        assert runner > 0, "its runner is not buried yet"
        return Timed(_moment(job["ended_at"]) - _moment(job["started_at"]), runner, stolen)

    def killed(self) -> Timed:
        kills: list[None] = []
        timed = self.timed(lambda: kills.append(self.server.kill()))
        assert kills, "the job ended too soon for the server to be killed"
        return timed

    def _wait_for(self, job_id: str) -> None:
        """Until the server knows every point, once, and has the model."""
        if self.server.process is None:
            self.server.start()
        points = self.api.get(f"/v1/jobs/{job_id}/metrics").json()["metrics"]
        known = {name: [(point["step"], point["value"]) for point in line] for name, line in points.items()}
        deadline = time.monotonic() + ARRIVES_SECONDS
        while not self._has(job_id, known):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{job_id} did not arrive in {ARRIVES_SECONDS} s")
            time.sleep(1)

    def _has(self, job_id: str, known: dict[str, list[tuple[int, float]]]) -> bool:
        run = run_of(self.server.runs("flashcards"), job_id)
        if run is None or run["info"]["status"] != "FINISHED":
            return False
        run_id = run["info"]["run_id"]
        told = {name: self.server.history(run_id, name) for name in known}
        return told == known and "model" in self.server.files(run_id)


@contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """What is started meanwhile runs on this core, and so does all that it starts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before if core is None else {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def ground(folder: Path) -> Iterator[Ground]:
    theirs, ours, *_ = [*sorted(os.sched_getaffinity(0)), None, None]
    server = MlflowServer(folder / "mlflow")
    apart = None if ours is None else theirs
    with (
        pinned(apart),
        running(server),
        pinned(ours),
        running_service(folder / "home", threads=1, mlflow_url=server.url) as service,
        pinned(apart),  # the server is started again from here
        httpx.Client(base_url=service.url, timeout=120) as api,
    ):
        yield Ground(service, ours, api, server)


def bench(folder: Path, trials: int = 12, epochs: int = 60) -> tuple[list[Row], list[float]]:
    """What is said, and by what each killed server has multiplied a job's time."""
    threes = []
    with ground(folder) as stage:
        trial = Trial(stage, epochs)
        trial.timed()  # the first job of a service reads what the others find in memory
        for _ in range(trials):
            threes.append(three := Three(trial.timed(), trial.killed(), trial.timed()))
            told = (f"{each.seconds:.2f} s ({each.rest:.2f})" for each in (three.first, three.broken, three.second))
            console.print("{}, killed {}, {}".format(*told), style="dim")
    equal, whole = [three.equal for three in threes], [three.whole for three in threes]
    killed = [three.changed for three in threes]
    low, high = likely(killed)
    rows = [
        ("a job, server there", f"{median(three.plain for three in threes):.2f} s", f"median of {trials} pairs"),
        ("the same again", f"x {median(equal):.4f}", f"middle half {_spread(equal)}: this machine's noise"),
        ("server killed, the whole time", f"x {median(whole):.4f}", f"middle half {_spread(whole)}"),
        ("server killed, its runner's computing aside", f"x {median(killed):.4f}", f"middle half {_spread(killed)}"),
        ("where its median is, 19 times of 20", f"x {low:.4f} to {high:.4f}", "gate: all of it within 0.98 to 1.02"),
        (
            "what was missed",
            f"{trials} of {trials}",
            "every point once, and the model, in the run that was there before",
        ),
    ]
    return rows, killed


def likely(ratios: list[float]) -> tuple[float, float]:
    """The range that holds the median 19 times of 20, however they are spread: so many lie on one side by chance."""
    count = len(ratios)
    outside, chance = 0, 1 / 2**count
    while chance <= 0.025:
        outside += 1
        chance += comb(count, outside) / 2**count
    if not outside:
        return 0.0, float("inf")  # of fewer than six nothing follows
    ordered = sorted(ratios)
    return ordered[outside - 1], ordered[count - outside]


def verdict(ratios: list[float]) -> str | None:
    """Why the gate does not hold; None where it does."""
    low, high = likely(ratios)
    if low > 1 - GATE and high < 1 + GATE:
        return None
    if high < 1 - GATE or low > 1 + GATE:
        return f"a killed server changes the time of a job by {median(ratios) - 1:+.1%}, and {GATE:.0%} is the gate"
    return f"whether it is less than {GATE:.0%} cannot be told here: more --trials, or a quieter machine"


def _spread(ratios: list[float]) -> str:
    low, _, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [ratios[0]] * 3
    return f"{low:.4f} to {high:.4f}"


def _of_the_buried(nursery: psutil.Process) -> float:
    """Processor seconds of all runners that it bore and that have ended."""
    times = nursery.cpu_times()
    return float(times.children_user + times.children_system)


def _stolen(core: int | None) -> float:
    """Seconds that the host took away from this core, or from all."""
    cores = psutil.cpu_times(percpu=True)
    return float(sum(getattr(each, "steal", 0.0) for each in (cores if core is None else [cores[core]])))


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=60)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="flashcards-", ignore_cleanup_errors=True) as folder:
        rows, killed = bench(Path(folder), asked.trials, asked.epochs)
    table = Table("what", "figure", "")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if (why := verdict(killed)) is not None:
        sys.exit(why)


if __name__ == "__main__":
    main()
