import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil
import pytest
import uvloop
from safetensors.numpy import save_file

from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape
from flashcards.contract.resources import Split
from service.files import process
from service.files.checker import check_file
from service.files.errors import UNCHECKED, BadFile
from service.files.facts import DatasetFacts, DatasetQuestion, ModelFacts, ModelQuestion

SMALL = Architecture(blocks=2, filters=4)
MODEL = ModelQuestion(architecture=SMALL)
DATASET = DatasetQuestion(max_bytes=10_000_000)
Facts = TypeVar("Facts")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    save_file({name: np.ones(shape, "f4") for name, shape in SMALL.tensors(3)}, path, metadata={"format": "np"})
    return path


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "images"
    with path.open("wb") as file:
        np.savez_compressed(file, x=np.arange(90, dtype="u1").reshape(10, 3, 3), y=np.arange(10) % 4)
    return path


def refusal(path: Path, question: ModelQuestion | DatasetQuestion) -> BadFile:
    with pytest.raises(BadFile) as caught:
        asyncio.run(check_file(path, question))
    return caught.value


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = psutil.Process().children()
    yield
    assert set(psutil.Process().children()) <= set(before)


@pytest.fixture
def child_runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda code: monkeypatch.setattr(process, "COMMAND", (sys.executable, "-I", "-c", code))


def on(loop: str, work: Coroutine[Any, Any, Facts]) -> Facts:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
        return runner.run(work)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_model(loop: str, weights: Path) -> None:
    facts = on(loop, check_file(weights, MODEL))
    assert facts == ModelFacts(architecture=SMALL, input=ImageShape(32, 32, 3), range=(0, 1), parameters=1111)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_dataset(loop: str, images: Path) -> None:
    facts = on(loop, check_file(images, DATASET))
    split = Split(count=10, shape=ImageShape(3, 3, 1), dtype="uint8", low=0, high=89, classes=4)
    assert facts == DatasetFacts(format="npz", splits={"train": split})


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
def test_every_image_type_is_read_inside_the_sandbox(dtype: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x_train=np.ones((2, 4, 4, 3), dtype), x_test=np.zeros((1, 4, 4, 3), dtype))
    facts = asyncio.run(check_file(tmp_path / "x.npz", DATASET))
    assert facts.splits["train"].dtype == np.dtype(dtype).name


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (b"", "not a safetensors file"),
        (b"hello", "not a safetensors file"),
        (b"\x02\0\0\0\0\0\0\0{}", "the weights do not fit the architecture"),
        (b'\x0a\0\0\0\0\0\0\0{"\\ud800":1}', "the safetensors header is damaged"),
        (b"\xff\0\0\0\0\0\0\0{}", "the file is cut off"),
    ],
)
def test_a_refused_model(content: bytes, title: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    assert refusal(tmp_path / "file", MODEL).title == title


def test_a_refused_dataset(weights: Path, images: Path) -> None:
    assert "a safetensors file" in refusal(weights, DATASET).detail
    assert refusal(images, DatasetQuestion(max_bytes=10)).title == "the dataset is too large"
    images.write_bytes(images.read_bytes()[:-30])
    assert refusal(images, DATASET).title == "the npz is damaged"


def test_an_odd_name_in_a_zip_is_read_inside_the_sandbox(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", green=np.zeros(3))
    odd = (tmp_path / "x.npz").read_bytes().replace(b"green", b"gr\x81\x82n")
    (tmp_path / "x.npz").write_bytes(odd)
    assert refusal(tmp_path / "x.npz", DATASET).title == "unknown arrays"


def test_a_header_that_eats_memory_is_refused(tmp_path: Path) -> None:
    header = b'{"a":[' + b"[]," * 16_000_000 + b"[]]}"
    (tmp_path / "file").write_bytes(len(header).to_bytes(8, "little") + header)
    bad = refusal(tmp_path / "file", MODEL)
    assert (bad.title, "memory" in bad.detail) == (UNCHECKED, True)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "raise SystemExit(3)",
        "import os; os.abort()",
        "import os; os.kill(os.getpid(), 9)",
        "print('rubbish')",
        "print('[]')",
        "print('{}')",
        "print('null')",
        "print('{\"facts\": 3}')",
        "print('{\"facts\": {}}')",
        'print(\'{"facts": {"format": "npz", "splits": {"train": {}}}}\')',
        'print(\'{"facts": {"metadata": {}, "tensors": {"a": -1}}}\')',
        'print(\'{"facts": {"metadata": {}, "tensors": {}}}\'); raise SystemExit(1)',
        'print(\'{"bad": "words"}\')',
        'print(\'{"crash": "Traceback"}\')',
        "import os; os.write(1, bytes(range(256)))",
        "import os\nwhile True: os.write(1, b'[' * 65536)",
        "import sys; sys.stdin.close(); print('{\"facts\":' * 5000)",
    ],
)
@pytest.mark.parametrize("question", [MODEL, DATASET], ids=["model", "dataset"])
def test_whatever_becomes_of_the_child_the_file_is_refused(
    code: str, question: ModelQuestion | DatasetQuestion, child_runs: Any, weights: Path
) -> None:
    child_runs(code)
    assert refusal(weights, question).title == UNCHECKED


def test_a_child_that_cannot_be_started_refuses_the_file(monkeypatch: pytest.MonkeyPatch, weights: Path) -> None:
    monkeypatch.setattr(process, "COMMAND", ("/nowhere/python",))
    assert refusal(weights, MODEL).title == UNCHECKED


@pytest.mark.parametrize("code", ["import time; time.sleep(60)", "import os; os.close(1)\nwhile True: pass"])
def test_a_child_that_hangs_is_killed(
    code: str, child_runs: Any, monkeypatch: pytest.MonkeyPatch, weights: Path
) -> None:
    child_runs(code)
    monkeypatch.setattr(process, "SECONDS", 0)
    start = time.monotonic()
    assert "longer than 1 second" in refusal(weights, MODEL).detail
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("after", [0, 0.001, 0.01, 0.2])
def test_a_cancelled_check_leaves_no_child(loop: str, after: float, child_runs: Any, weights: Path) -> None:
    child_runs("import time; time.sleep(60)")

    async def cancel() -> None:
        check = asyncio.create_task(check_file(weights, MODEL))
        await asyncio.sleep(after)
        check.cancel()
        with pytest.raises(asyncio.CancelledError):
            await check

    on(loop, cancel())


def test_the_event_loop_goes_on_meanwhile(child_runs: Any, weights: Path) -> None:
    child_runs("import time; time.sleep(0.5)")

    async def longest_pause() -> float:
        check = asyncio.create_task(check_file(weights, MODEL))
        pauses = []
        while not check.done():
            start = time.monotonic()
            await asyncio.sleep(0.01)
            pauses.append(time.monotonic() - start)
        assert isinstance(check.exception(), BadFile)
        return max(pauses)

    assert asyncio.run(longest_pause()) < 0.3


def test_checks_run_side_by_side(weights: Path, images: Path) -> None:
    async def both() -> tuple[ModelFacts, DatasetFacts]:
        return await asyncio.gather(check_file(weights, MODEL), check_file(images, DATASET))

    assert [type(facts) for facts in asyncio.run(both())] == [ModelFacts, DatasetFacts]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_child_gets_no_secrets(loop: str, monkeypatch: pytest.MonkeyPatch, child_runs: Any, weights: Path) -> None:
    monkeypatch.setenv("FLASHCARDS_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    child_runs(
        "import json, os\n"
        "told = {'environment': sorted(os.environ), 'folder': os.getcwd(), 'session': os.getsid(0) == os.getpid()}\n"
        "print(json.dumps({'facts': told}))"
    )
    with weights.open("rb") as upload:
        told = on(loop, process.ask_child(upload, {}, work=0))
    environment = told.pop("environment")
    assert isinstance(environment, list)
    assert set(environment) <= {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "LC_CTYPE", "LD_LIBRARY_PATH"}
    assert told == {"folder": "/", "session": True}


@pytest.mark.parametrize("module", ["safetensors", "npz"])
def test_the_child_imports_neither_torch_nor_pydantic(module: str) -> None:
    code = f"import sys, json, service.files.child, service.files.{module}; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd="/", check=True)
    heavy = {name.partition(".")[0] for name in json.loads(done.stdout)} & {"torch", "pydantic", "flashcards", "ledger"}
    assert heavy == set()


def test_a_check_is_quick(weights: Path) -> None:
    """Printed for whoever runs pytest -s; the bound only catches a heavy import."""
    start = time.perf_counter()
    asyncio.run(check_file(weights, MODEL))
    milliseconds = (time.perf_counter() - start) * 1000
    print(f"\na small model is checked in {milliseconds:.0f} ms")
    assert milliseconds < 2000
