"""The runner as its supervisor sees it: a real process."""

import io
import os
import time

import psutil
import pytest
from making import weights
from safetensors.numpy import load, save

from flashcards.contract.specs import job_spec
from worker.child import Child, LogLine, Spare
from worker.messages import Assignment, SaidDone, SaidFailed, SaidProgress, SaidStopped, StagedModel

MODEL = "model_" + "0" * 32


@pytest.fixture
def assignment(tmp_path):
    """A capture of a small random network."""

    def make(**changes) -> Assignment:
        (tmp_path / "model.safetensors").write_bytes(weights())
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        model = StagedModel(
            path=str(tmp_path / "model.safetensors"),
            digest="0" * 64,
            architecture={"blocks": 2, "filters": 4},
            input="16x16x1",
            range=(0, 1),
            made_here=False,
        )
        spec = job_spec.validate_python(
            {"kind": "capture", "source": "maze", "model": MODEL, "count": 5, "r": 2, **changes}
        )
        return Assignment(spec=spec, out=str(out), model=model, resume_seconds=10, device="cpu", threads=1)

    return make


@pytest.fixture
def child():
    started = Child()
    yield started
    started.close()


def listen(child, seconds: float = 60) -> list[object]:
    """Everything it says until it exits."""
    heard = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done = child.exit_code() is not None
        while not child.heard.empty():
            heard.append(child.heard.get())
        if done:
            return heard
        time.sleep(0.01)
    raise TimeoutError(heard)


def test_it_does_what_it_is_told_and_says_so(child, assignment, tmp_path):
    child.assign(assignment())
    heard = listen(child)
    assert child.exit_code() == 0
    assert isinstance(heard[0], SaidProgress)
    assert isinstance(heard[-1], SaidDone)
    assert heard[-2].progress.fraction == 1.0
    assert {file.name for file in heard[-1].files} == {"cards.npy", "sheet.png", "source.png"}
    assert all((tmp_path / "out" / file.name).is_file() for file in heard[-1].files)


def test_it_knows_no_secret(monkeypatch, assignment):
    monkeypatch.setenv("FLASHCARDS_DATABASE_URL", "postgresql://user:secret@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    child = Child()
    try:
        environment = psutil.Process(child.pid).environ()
        assert "secret" not in " ".join(environment.values())
        assert not [name for name in environment if name.startswith(("FLASHCARDS", "AWS"))]
        assert os.getsid(child.pid) == child.pid != os.getsid(0)
    finally:
        child.close()


def test_asked_to_stop_it_leaves_something_readable(child, assignment):
    child.assign(assignment(count=500_000, r=20))
    while not isinstance(said := child.heard.get(timeout=60), SaidProgress) or said.progress.step == 0:
        pass  # until the first cards are there
    child.ask_to_stop()
    last = listen(child, seconds=20)[-1]
    assert isinstance(last, SaidStopped)
    assert "cards.npy" in {file.name for file in last.files}


def test_a_failure_comes_in_words(child, assignment, tmp_path):
    work = assignment(r=1000)
    path = tmp_path / "model.safetensors"
    path.write_bytes(save({name: tensor * 3e38 for name, tensor in load(path.read_bytes()).items()}))
    child.assign(work)
    last = listen(child)[-1]
    assert isinstance(last, SaidFailed)
    assert last.error.type == "diverged"


def test_it_exits_when_its_stdin_closes(child):
    child._process.stdin.close()
    deadline = time.monotonic() + 30  # torch may still be on its way in
    while child.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_rubbish_on_the_line_is_a_log_line(child):
    child._hear_messages(io.BytesIO(b'{"say": "nonsense"}\nnot json\n'))
    assert isinstance(child.heard.get(timeout=5), LogLine)
    assert isinstance(child.heard.get(timeout=5), LogLine)


def test_the_spare_is_taken_once_and_replaced_when_dead():
    spare = Spare()
    try:
        spare.prepare()
        spare.prepare()
        first = spare.take()
        second = spare.take()
        assert first.pid != second.pid
        first.close()
        second.close()
        spare.prepare()
        spare._waiting.close()
        fresh = spare.take()
        assert fresh.is_alive()
        fresh.close()
    finally:
        spare.close()
