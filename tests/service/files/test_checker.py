import asyncio
import errno
import io
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil
import pytest
import torch
import uvloop
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape
from flashcards.contract.resources import Preparation, Split
from service.files import process
from service.files.checker import check_file
from service.files.errors import UNCHECKED, BadFile
from service.files.facts import DatasetFacts, DatasetQuestion, ModelFacts, ModelQuestion

SMALL = BlkArchitecture(blocks=2, filters=4)
SHAPES = SMALL.tensors(ImageShape(32, 32, 3))
MODEL = ModelQuestion(architecture=SMALL)
DATASET = DatasetQuestion(max_bytes=10_000_000)
Facts = TypeVar("Facts")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    save_file({name: np.ones(shape, "f4") for name, shape in SHAPES}, path, metadata={"format": "np"})
    return path


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "images"
    with path.open("wb") as file:
        np.savez_compressed(file, x=np.arange(90, dtype="u1").reshape(10, 3, 3), y=np.arange(10) % 4)
    return path


def refusal(path: Path, question: ModelQuestion | DatasetQuestion) -> BadFile:
    with pytest.raises(BadFile) as caught:
        asyncio.run(check(path, question))
    assert not path.with_suffix(".made").exists()
    return caught.value


def check(path: Path, question: Any) -> Coroutine[Any, Any, Any]:
    return check_file(path, question, path.with_suffix(".made"))


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
    facts = on(loop, check(weights, MODEL))
    assert facts == ModelFacts(architecture=SMALL, input=ImageShape(32, 32, 3), range=(0, 1), parameters=1111)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_dataset(loop: str, images: Path) -> None:
    facts = on(loop, check(images, DATASET))
    labels = {"classes": 4, "lowest_label": 0, "highest_label": 3}
    split = Split(count=10, shape=ImageShape(3, 3, 1), dtype="uint8", low=0, high=89, **labels)
    assert facts == DatasetFacts(format="npz", splits={"train": split})


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The layers of SMALL under names of their own."""
    state = {f"net.{place}": torch.full(shape, float(place)) for place, (_, shape) in enumerate(SHAPES)}
    torch.save({"epoch": 1, "state_dict": state}, tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_pt_becomes_safetensors_with_our_names(loop: str, checkpoint: Path) -> None:
    facts = on(loop, check(checkpoint, MODEL))
    names = [name for name, _ in SHAPES]
    assert facts.mapping == {f"net.{place}": name for place, name in enumerate(names)}
    made = load_file(checkpoint.with_suffix(".made"))
    assert made.keys() == set(names)
    assert all((made[name] == place).all() for place, name in enumerate(names))
    with safe_open(checkpoint.with_suffix(".made"), "np") as opened:
        assert opened.metadata() == {
            "flashcards.architecture": SMALL.model_dump_json(),
            "flashcards.input": "32x32x3",
            "flashcards.range": "0.0,1.0",
            "flashcards.converted_from": "pt",
        }


def test_what_was_made_needs_no_conversion_and_no_query(checkpoint: Path) -> None:
    asyncio.run(check(checkpoint, MODEL))
    made = checkpoint.with_suffix(".made").rename(checkpoint.with_name("again"))
    assert asyncio.run(check(made, ModelQuestion())) == asyncio.run(check(made, MODEL))
    assert not made.with_suffix(".made").exists()


def test_a_plain_file_is_kept_as_it_is(weights: Path, images: Path) -> None:
    asyncio.run(check(weights, MODEL))
    asyncio.run(check(images, DATASET))
    assert not weights.with_suffix(".made").exists()
    assert not images.with_suffix(".made").exists()


@pytest.mark.parametrize(
    ("prefix", "dtype", "word"), [("module.", "f4", ""), ("", "f2", ", float16"), ("", "f8", ", float64")]
)
def test_safetensors_are_converted_where_they_must_be(prefix: str, dtype: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    save_file({prefix + name: np.full(shape, 0.1, dtype) for name, shape in SHAPES}, path)
    facts = asyncio.run(check(path, MODEL))
    assert facts.mapping == ({prefix + name: name for name, _ in SHAPES} if prefix else None)
    with safe_open(path.with_suffix(".made"), "np") as opened:
        assert opened.metadata()["flashcards.converted_from"] == f"safetensors{word}"
        assert (opened.get_tensor("decoder.head.bias") == np.array(0.1, dtype).astype("f4")).all()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "pictures", "w") as archive:
        for place, format in enumerate(("PNG", "JPEG", "WEBP", "PNG")):
            stream = io.BytesIO()
            Image.new("RGB", (6, 4), (50 * place, 0, 0)).save(stream, format, quality=100)
            archive.writestr(f"{'ab'[place // 2]}/{place}.{format}", stream.getvalue())
    return tmp_path / "pictures"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_zip_of_images_becomes_an_npz(loop: str, pictures: Path) -> None:
    facts = on(loop, check(pictures, DATASET))
    split = facts.splits["train"]
    assert (split.count, split.shape, split.classes, split.labels) == (4, (4, 6, 3), 2, ["a", "b"])
    made = np.load(pictures.with_suffix(".made"))
    assert made["x_train"].shape == (4, 4, 6, 3)
    assert made["y_train"].tolist() == [0, 0, 1, 1]
    assert asyncio.run(check(pictures.with_suffix(".made").rename(pictures.with_name("npz")), DATASET)).format == "npz"


def test_every_kind_of_image_is_read_inside_the_sandbox(tmp_path: Path) -> None:
    """Pillow imports parts of itself on the way to palettes, EXIF, transparency and photos with previews."""
    exif = Image.Exif()
    exif[0x0112], exif[0x011A] = 6, 72.0
    colour = Image.effect_noise((9, 7), 50).convert("RGB")
    saves: list[tuple[Image.Image, str, dict[str, Any]]] = [
        (colour.quantize(8), "PNG", {"transparency": 3}),
        (colour.convert("LA"), "PNG", {}),
        (colour.convert("1"), "PNG", {"dpi": (72, 72)}),
        (colour, "PNG", {"icc_profile": bytes(200), "exif": exif}),
        (colour, "JPEG", {"exif": exif, "progressive": True, "comment": "x"}),
        (colour.convert("CMYK"), "JPEG", {}),
        (colour, "MPO", {"save_all": True, "append_images": [colour]}),
        (colour.convert("RGBA"), "WEBP", {"exif": exif}),
        (colour, "WEBP", {"lossless": True}),
    ]
    with zipfile.ZipFile(tmp_path / "all", "w") as archive:
        for place, (image, format, options) in enumerate(saves):
            stream = io.BytesIO()
            image.save(stream, format, **options)
            archive.writestr(f"{place}.png", stream.getvalue())
    facts = asyncio.run(check(tmp_path / "all", DatasetQuestion(max_bytes=10**6, input=ImageShape(8, 8, 3))))
    assert facts.splits["train"].count == len(saves)


def test_images_are_brought_to_a_size(pictures: Path) -> None:
    question = DatasetQuestion(max_bytes=10_000_000, input=ImageShape(3, 3, 1))
    assert asyncio.run(check(pictures, question)).splits["train"].shape == (3, 3, 1)
    assert np.load(pictures.with_suffix(".made"))["x_train"].shape == (4, 3, 3, 1)


def test_an_npz_is_prepared_where_it_must_be_and_else_kept_as_it_is(images: Path) -> None:
    fits = asyncio.run(check(images, DatasetQuestion(max_bytes=10**6, input=ImageShape(3, 3, 1))))
    assert fits.preparation is None
    assert not images.with_suffix(".made").exists()
    question = DatasetQuestion(max_bytes=10**6, input=ImageShape(8, 8, 3), invert=True)
    facts = asyncio.run(check(images, question))
    done = {"input": "8x8x3", "resize": "bilinear", "channels": "copied", "invert": True}
    assert facts.preparation == Preparation.model_validate(done)
    assert facts.splits["train"].shape == (8, 8, 3)
    made = np.load(images.with_suffix(".made"))
    assert made["x_train"].shape == (10, 8, 8, 3)
    assert made["y_train"].tolist() == (np.arange(10) % 4).tolist()


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
@pytest.mark.parametrize(("channels", "wanted"), [((), 3), ((3,), 1), ((3,), 3)])
def test_every_npz_is_prepared_inside_the_sandbox(dtype: str, channels: tuple[int, ...], wanted: int, tmp_path: Path):
    np.savez(tmp_path / "x.npz", x=np.ones((2, 4, 4, *channels), dtype), y=np.arange(2, dtype="u2"))
    question = DatasetQuestion(max_bytes=10**6, input=ImageShape(5, 6, wanted))
    split = asyncio.run(check(tmp_path / "x.npz", question)).splits["train"]
    assert (split.shape, split.low, split.high) == ((5, 6, wanted), 1, 1)
    assert split.dtype == ("uint8" if dtype == "u1" else "float32")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_full_disk_is_no_fault_of_the_file(loop: str, checkpoint: Path) -> None:
    order = {"format": "weights", "names": {"net.0": "a"}, "metadata": {}}
    with checkpoint.open("rb") as upload, Path("/dev/full").open("wb") as full, pytest.raises(OSError) as caught:
        on(loop, process.ask_child(upload, order, work=0, making=process.Making(full.fileno(), 10**6)))
    assert caught.value.errno == errno.ENOSPC


def test_a_conversion_writes_no_more_than_it_may(checkpoint: Path) -> None:
    order = {"format": "weights", "names": {f"net.{place}": str(place) for place in range(16)}, "metadata": {}}
    made = checkpoint.with_name("made")
    with checkpoint.open("rb") as upload, made.open("wb") as out, pytest.raises(BadFile) as caught:
        asyncio.run(process.ask_child(upload, order, work=0, making=process.Making(out.fileno(), 1000)))
    assert caught.value.detail == "it becomes larger than it may"
    assert made.stat().st_size <= 1000


def test_a_cancelled_conversion_leaves_no_file(child_runs: Any, pictures: Path) -> None:
    child_runs(
        "import json, sys, time\n"
        "if json.loads(sys.argv[1])['out']: time.sleep(60)\n"
        'print(\'{"facts": {"format": "images", "splits": {}}}\')'
    )

    async def cancel() -> None:
        task = asyncio.create_task(check(pictures, DATASET))
        while not pictures.with_suffix(".made").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert not pictures.with_suffix(".made").exists()


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
def test_every_image_type_is_read_inside_the_sandbox(dtype: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x_train=np.ones((2, 4, 4, 3), dtype), x_test=np.zeros((1, 4, 4, 3), dtype))
    facts = asyncio.run(check(tmp_path / "x.npz", DATASET))
    assert facts.splits["train"].dtype == np.dtype(dtype).name


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (b"", "not a checkpoint"),
        (b"hello", "not a checkpoint"),
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
    assert refusal(images, DATASET).title == "the zip is damaged"


def test_an_odd_name_in_a_zip_is_read_inside_the_sandbox(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", green=np.zeros(3))
    odd = (tmp_path / "x.npz").read_bytes().replace(b"green", b"gr\x81\x82n")
    (tmp_path / "x.npz").write_bytes(odd)
    assert refusal(tmp_path / "x.npz", DATASET).title == "unknown arrays"


def test_a_file_that_eats_memory_is_refused(child_runs: Any, weights: Path) -> None:
    child_runs(
        "import sys\n"
        "from service.files import child\n"
        "child._facts = lambda *_, **__: bytearray(1 << 60)\n"
        "child.main(sys.argv[1])"
    )
    bad = refusal(weights, MODEL)
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
        task = asyncio.create_task(check(weights, MODEL))
        await asyncio.sleep(after)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    on(loop, cancel())


def test_the_event_loop_goes_on_meanwhile(child_runs: Any, weights: Path) -> None:
    child_runs("import time; time.sleep(0.5)")

    async def longest_pause() -> float:
        task = asyncio.create_task(check(weights, MODEL))
        pauses = []
        while not task.done():
            start = time.monotonic()
            await asyncio.sleep(0.01)
            pauses.append(time.monotonic() - start)
        assert isinstance(task.exception(), BadFile)
        return max(pauses)

    assert asyncio.run(longest_pause()) < 0.3


def test_checks_run_side_by_side(weights: Path, images: Path) -> None:
    async def both() -> tuple[ModelFacts, DatasetFacts]:
        return await asyncio.gather(check(weights, MODEL), check(images, DATASET))

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
    assert set(environment) <= {*process.ENVIRONMENT, "LC_CTYPE", "LD_LIBRARY_PATH"}
    assert not [name for name in process.ENVIRONMENT if name.startswith(("FLASHCARDS", "AWS"))]
    assert told == {"folder": "/", "session": True}


@pytest.mark.parametrize("module", ["weights", "dataset", "convert"])
def test_the_child_imports_neither_torch_nor_pydantic(module: str) -> None:
    code = f"import sys, json, service.files.child, service.files.{module}; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd="/", check=True)
    heavy = {name.partition(".")[0] for name in json.loads(done.stdout)} & {"torch", "pydantic", "flashcards", "ledger"}
    assert heavy == set()


def test_a_check_is_quick(weights: Path) -> None:
    """Printed for whoever runs pytest -s; the bound only catches a heavy import."""
    start = time.perf_counter()
    asyncio.run(check(weights, MODEL))
    milliseconds = (time.perf_counter() - start) * 1000
    print(f"\na small model is checked in {milliseconds:.0f} ms")
    assert milliseconds < 2000
