"""The whole way on real data in about a minute, all over HTTP.

Digits in, an autoencoder and its flashcards out; then a second network that has never seen a digit, taught by cards.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.progress import Progress as Bars

from flashcards import leash
from flashcards.cli.bars import JobBar, job_bars
from flashcards.client import Client
from flashcards.contract.resources import Job
from flashcards.contract.results import CaptureResult, DistillResult, EvaluateResult, TrainResult
from flashcards.errors import CannotStart, FlashcardsError

ARCHITECTURE = "blk_2_fil_16"
SIDE = 16
TEST_SHARE = 0.2
START_SECONDS = 60
STOP_SECONDS = 20
Result = TypeVar("Result", TrainResult, EvaluateResult, CaptureResult, DistillResult)


@dataclass(frozen=True)
class Summary:
    network: str
    parameters: int
    test_mae: float
    constant_mae: float
    psnr: float
    cards: int
    r: int
    gamma2_first: float
    gamma2_last: float
    taught_by: str
    taught_mae: float
    seconds: dict[str, float]
    sheet: Path
    source: Path
    reconstructions: Path


def run_demo(
    folder: Path = Path("flashcards-demo"),
    images: int | None = None,
    epochs: int = 20,
    count: int = 256,
    r: int = 10,
    quiet: bool = False,
) -> Summary:
    """Start a service, use it as anybody would, stop it. The pictures are left in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    home = tempfile.TemporaryDirectory(prefix="flashcards-")
    with home, job_bars(quiet=quiet) as bars, ExitStack() as running:
        steps = Steps(bars)
        with steps.one("start"):
            url = running.enter_context(service(Path(home.name), folder / "service.log"))
            client = running.enter_context(Client(url))
        with steps.one("upload"):
            dataset = client.datasets.push(digits(images), name="handwritten digits").id
        trained, _ = steps.job(client, train(client, dataset, epochs), TrainResult)
        model = trained.model or ""
        measured, evaluation = steps.job(client, client.evaluate(model=model, dataset=dataset), EvaluateResult)
        mazes = client.capture(model=model, count=count, r=r, source="maze")
        captured, capture = steps.job(client, mazes, CaptureResult)
        cards, _ = steps.job(client, client.capture(model=model, count=trained.images), CaptureResult, "cards")
        taught, _ = steps.job(client, distill(client, cards.flashcards or "", dataset, epochs), DistillResult)
        return Summary(
            network=ARCHITECTURE,
            parameters=trained.parameters,
            test_mae=measured.mae,
            constant_mae=measured.constant_mae,
            psnr=measured.psnr,
            cards=captured.recipe.count,
            r=captured.recipe.r,
            gamma2_first=captured.gamma2[0],
            gamma2_last=captured.gamma2[-1],
            taught_by=f"{cards.recipe.count:,} cards from source {cards.recipe.source}",
            taught_mae=taught.compared[-1].child_mae,
            seconds=steps.seconds,
            sheet=client.flashcards.sheet(captured.flashcards or "", folder / "sheet.png"),
            source=client.jobs.artifact(capture, "source.png", folder),
            reconstructions=client.jobs.artifact(evaluation, "reconstructions.png", folder),
        )


def train(client: Client, dataset: str, epochs: int) -> Job:
    # Larger steps and smaller batches than the default: so few epochs must do.
    return client.train(dataset=dataset, architecture=ARCHITECTURE, epochs=epochs, learning_rate=3e-3, batch_size=32)


def distill(client: Client, flashcards: str, dataset: str, epochs: int) -> Job:
    """With the budget that its parent had; the dataset is only what both are compared on."""
    return client.distill(
        flashcards=flashcards,
        dataset=dataset,
        architecture=ARCHITECTURE,
        epochs=epochs,
        learning_rate=3e-3,
        batch_size=32,
    )


def digits(images: int | None = None) -> dict[str, NDArray[np.generic]]:
    """Real handwritten digits, 8 x 8 in scikit-learn, enlarged; shuffled, because they are ordered by writer."""
    from sklearn.datasets import load_digits

    found = load_digits()
    chosen = np.random.default_rng(0).permutation(len(found.images))[:images]
    small = (found.images[chosen] / 16 * 255).round().astype(np.uint8)
    large = [Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BILINEAR) for image in small]
    x, y = np.stack([np.asarray(image) for image in large]), found.target[chosen]
    test = max(1, round(len(x) * TEST_SHARE))
    return {"x_train": x[test:], "y_train": y[test:], "x_test": x[:test], "y_test": y[:test]}


@dataclass
class Steps:
    """A bar and a stopwatch for each step."""

    bars: Bars
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def one(self, name: str) -> Iterator[None]:
        task = self.bars.add_task(name, total=None, words="")
        with self._timed(name):
            yield
        self.bars.update(task, total=1.0, completed=1.0)

    def job(self, client: Client, job: Job, kind: type[Result], name: str | None = None) -> tuple[Result, str]:
        name = name or job.kind
        with self._timed(name):
            ended = client.jobs.wait(job.id, on_event=JobBar(self.bars, name).show)
        if not isinstance(ended.result, kind):
            words = f"{ended.error.title}: {ended.error.detail}" if ended.error else ended.state
            raise FlashcardsError(f"the {job.kind} job did not succeed. {words}")
        return ended.result, ended.id

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began


@contextmanager
def service(home: Path, log: Path) -> Iterator[str]:
    """The embedded service as a child of ours, with settings of its own, at a free port."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLASHCARDS_")}
    # Two threads on so small a network win nothing, and lose much on a machine that has other work.
    environment |= {"FLASHCARDS_HOME": str(home), "FLASHCARDS_PORT": str(port), "FLASHCARDS_THREADS": "1"}
    environment |= {leash.VARIABLE: "1", "PYTHONSAFEPATH": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "service"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    with process:
        try:
            wait_until_ready(url, process, log)
            yield url
        finally:
            stop(process)


def wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    with Client(url, timeout=5) as client:
        while not client.is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
                raise CannotStart(f"the service did not start; the end of {log}:\n{tail}")
            time.sleep(0.1)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
