"""The runner as its supervisor sees it: a real process."""

import io
import os
import sys
import time
from pathlib import Path

import psutil
import pytest
from making import weights
from safetensors.numpy import load, save

from flashcards.contract.specs import job_spec
from worker.child import UNTOLD, LogLine, Parent
from worker.messages import Assignment, SaidDone, SaidFailed, SaidProgress, SaidStopped, StagedModel

MODEL = "model_" + "0" * 32
ORPHANED = 70


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


@pytest.fixture(scope="module")
def parent():
    """Of a worker that knows secrets."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FLASHCARDS_DATABASE_URL", "postgresql://user:secret@host/db")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        found = Parent()
        found.prepare()
    yield found
    found.close()


@pytest.fixture
def child(parent):
    born = parent.bear()
    yield born
    born.close()


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


def test_it_knows_no_secret(child):
    environment = psutil.Process(child.pid).environ()
    assert "secret" not in " ".join(environment.values())
    assert not [name for name in environment if name.startswith(("FLASHCARDS", "AWS"))]
    deadline = time.monotonic() + 30
    while os.getsid(child.pid) != child.pid:  # what is just born takes a moment
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert child.pid != os.getsid(0)


def open_files(pid: int) -> set[str]:
    return {str(descriptor.readlink()) for descriptor in Path(f"/proc/{pid}/fd").iterdir()}


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
    child._stdin.close()
    listen(child)
    assert child.exit_code() == ORPHANED


def test_rubbish_on_the_line_is_a_log_line(child):
    child._hear_messages(io.BytesIO(b'{"say": "nonsense"}\nnot json\n'))
    assert isinstance(child.heard.get(timeout=5), LogLine)
    assert isinstance(child.heard.get(timeout=5), LogLine)


def test_a_runner_is_born_at_once_where_the_nursery_is_warm(parent, child):
    assert child.pid != parent.pid
    began = time.monotonic()
    other = parent.bear()
    try:
        assert len({other.pid, child.pid, parent.pid}) == 3
        assert time.monotonic() - began < 1  # the import of torch alone takes longer
    finally:
        other.close()


def lets_go_of_sockets(pid):
    """Its number is told at once, and it closes what it was born with a moment later."""
    deadline = time.monotonic() + 10
    while any(name.startswith("socket:") for name in open_files(pid)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_the_nursery_has_one_thread_and_knows_nothing_of_its_runners_files(parent, child):
    """A fork of a process with threads would leave their locks held for ever."""
    assert child.pid
    nursery = psutil.Process(parent.pid)
    assert nursery.num_threads() == 1
    pipes = {name for name in open_files(child.pid) if name.startswith("pipe:")}
    assert len(pipes) == 3
    assert lets_go_of_sockets(child.pid)
    assert not pipes & open_files(nursery.pid)  # else a runner would not notice that its supervisor is gone


def test_what_a_crashed_runner_says_is_in_its_log_and_its_code_is_told(child):
    child._stdin.write(b"no assignment\n")
    child._stdin.flush()
    log = [line for line in listen(child) if isinstance(line, LogLine)]
    assert any("Traceback" in line for line in log)
    assert child.exit_code() == 1


def test_a_killed_runner_leaves_no_zombie(child, parent):
    process = psutil.Process(child.pid)
    process.kill()
    listen(child)
    assert child.exit_code() == -9
    child.close()
    while process.is_running():
        time.sleep(0.01)
    assert psutil.Process(parent.pid).children() == []


@pytest.mark.slow
def test_runners_outlive_their_nursery_and_another_one_takes_over(assignment):
    parent = Parent()
    try:
        first = parent.bear()
        pid, nursery = first.pid, psutil.Process(parent.pid)
        nursery.kill()
        nursery.wait()
        first.assign(assignment())
        assert isinstance(listen(first)[-1], SaidDone)
        assert first.exit_code() == UNTOLD  # whoever could have told is dead; its last word counts
        second = parent.bear()
        assert second.pid != pid
        assert parent.pid != nursery.pid
        first.close()
        second.close()
    finally:
        parent.close()


def test_one_that_is_stopped_before_it_is_born_is_never_born(assignment):
    parent = Parent()
    try:
        early = parent.bear()
        early.assign(assignment(count=100_000))
        early.ask_to_stop()
        assert early.exit_code() == -15
        assert early.close() == -15
        late = parent.bear()
        assert late.pid
        assert [process.pid for process in psutil.Process(parent.pid).children()] == [late.pid]
        late.close()
    finally:
        parent.close()


#: One whose runners take their time before they have a group of their own.
LATE = """
import os, socket, sys, time
sys.path.insert(0, sys.argv[1])
from worker.nursery import Nursery

setsid = os.setsid
os.setsid = lambda: (time.sleep(3), setsid())
Nursery(socket.socket(fileno=os.dup(0)), lambda: time.sleep(3)).serve()
"""


def test_one_that_is_just_born_is_killed_as_well():
    parent = Parent([sys.executable, "-I", "-c", LATE, str(Path(__file__).resolve().parents[2])])
    try:
        child = parent.bear()
        assert child.pid
        assert child.close() == -9  # a signal that went nowhere would have let it come to its end
    finally:
        parent.close()


def test_a_nursery_goes_with_whoever_started_it():
    parent = Parent()
    child = parent.bear()
    nursery, runner = psutil.Process(parent.pid), psutil.Process(child.pid)
    parent._line.close()
    child._stdin.close()
    assert not psutil.wait_procs([nursery, runner], timeout=20)[1]
    parent._line = None
    child.close()
    parent.close()
