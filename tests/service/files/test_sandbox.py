import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from service.files import sandbox

NO_DOORS = "pass"
LIMITS = "sandbox.set_limits(20)"
CALLS = "sandbox.give_up_rights(); sandbox.filter_calls()"
ALL = "sandbox.enter(20)"

OPENING = {
    "socket": "socket.socket()",
    "unix socket": "socket.socketpair()",
    "write": "open(folder + '/new', 'w').write('x')",
    "append": "open(folder + '/there', 'a').write('x')",
    "read": "open(folder + '/there').read()",
    "list": "os.listdir('/')",
    "pipe": "os.pipe()",
    "memory file": "os.memfd_create('x')",
    "run": "subprocess.run(['/bin/true'], check=True)",
}
TOUCHING = {
    "fork": "os.fork() or os._exit(0)",
    "kill": "os.kill(os.getpid(), 0)",
    "chmod": "os.chmod(folder + '/there', 0o600)",
    "truncate": "os.truncate(folder + '/there', 0)",
    "symlink": "os.symlink('/', folder + '/link')",
    "rename": "os.rename(folder + '/there', folder + '/elsewhere')",
    "remove": "os.remove(folder + '/elsewhere')",
    "priority": "os.nice(1)",
    "other process": "os.sched_getaffinity(1)",
}
SCRIPT = """
import ctypes, json, os, socket, subprocess, sys
from service.files import sandbox
deeds, folder = json.loads(sys.argv[1]), sys.argv[2]
{doors}
told = {{}}
for name, deed in deeds.items():
    try:
        exec(deed)
        told[name] = "done"
    except (OSError, MemoryError) as error:
        told[name] = type(error).__name__
print(json.dumps(told))
"""

by_number = pytest.mark.skipif(os.uname().machine not in sandbox.ARCHITECTURES, reason="no filter for this machine")


def run(doors: str, deeds: dict[str, str], folder: str = "/nowhere") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-W", "ignore", "-c", SCRIPT.format(doors=doors), json.dumps(deeds), folder]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", env={})


def told(doors: str, deeds: dict[str, str], folder: Path) -> dict[str, str]:
    (folder / "there").write_text("kept")
    done = run(doors, deeds, str(folder))
    assert done.returncode == 0, done.stderr
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def test_without_the_sandbox_every_deed_is_done(tmp_path: Path) -> None:
    assert told(NO_DOORS, OPENING | TOUCHING, tmp_path) == dict.fromkeys(OPENING | TOUCHING, "done")


@pytest.mark.parametrize("doors", [LIMITS, pytest.param(CALLS, marks=by_number), ALL])
def test_nothing_can_be_opened_or_started_with_one_layer_alone(doors: str, tmp_path: Path) -> None:
    answer = told(doors, OPENING, tmp_path)
    assert set(answer) == set(OPENING)
    assert "done" not in answer.values()
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("there", "kept")]


def test_what_was_inherited_is_closed(tmp_path: Path) -> None:
    copies = "first, last = os.dup(1), os.dup2(1, 900)"
    deeds = {"first": "os.write(first, b'x')", "last": "os.write(last, b'x')", "answer": "os.write(1, b' ')"}
    answer = told(f"{copies}; sandbox.enter(20)", deeds, tmp_path)
    assert answer == {"first": "OSError", "last": "OSError", "answer": "done"}


def test_one_file_may_be_written_up_to_its_limit(tmp_path: Path) -> None:
    out = "out = os.open(folder + '/out', os.O_WRONLY | os.O_CREAT); other = os.dup(1)"
    deeds = {"some": "assert os.write(out, b'x' * 600) == 600", "more": "os.write(out, b'x' * 600)"}
    deeds |= {"too much": "os.write(out, b'x')", "other": "os.write(other, b'x')", "open": "open(folder + '/new', 'w')"}
    answer = told(f"{out}; sandbox.enter(20, out, 1000)", deeds, tmp_path)
    assert answer == {"some": "done", "more": "done", "too much": "OSError", "other": "OSError"} | {
        "open": "PermissionError"
    }
    assert (tmp_path / "out").read_bytes() == b"x" * 1000


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's")
def test_the_namespaces_alone_leave_no_way_to_a_server_next_door(tmp_path: Path) -> None:
    doors = "before = os.readlink('/proc/self/ns/net'); sandbox.leave_namespaces()"
    if run(doors, {"moved": "assert os.readlink('/proc/self/ns/net') != before"}).returncode != 0:
        pytest.skip("this host refuses namespaces")
    with socket.create_server(("127.0.0.1", 0)) as server:
        deed = {"connect": f"socket.create_connection({server.getsockname()}, 5)"}
        assert told(NO_DOORS, deed, tmp_path) == {"connect": "done"}
        assert told(doors, deed, tmp_path) == {"connect": "OSError"}


@by_number
@pytest.mark.parametrize("doors", [CALLS, ALL])
def test_nothing_can_be_touched(doors: str, tmp_path: Path) -> None:
    assert told(doors, TOUCHING, tmp_path) == dict.fromkeys(TOUCHING, "PermissionError")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("there", "kept")]


@by_number
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are x86_64's")
def test_dangerous_calls_do_not_reach_the_kernel() -> None:
    calls = {"connect": 42, "sendto": 44, "clone": 56, "vfork": 58, "execve": 59, "ptrace": 101, "mount": 165}
    calls |= {"unshare": 272, "openat": 257, "process_vm_writev": 311, "bpf": 321, "execveat": 322, "userfaultfd": 323}
    calls |= {"prlimit64": 302, "io_uring_setup": 425, "clone3": 435, "x32 read": 0x40000000}
    deed = "libc = ctypes.CDLL(None, use_errno=True); libc.syscall({}, -1, -1, -1, -1, -1); {}"
    check = f"assert ctypes.get_errno() == {errno.EPERM}, ctypes.get_errno()"
    done = run(ALL, {name: deed.format(number, check) for name, number in calls.items()})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(calls, "done")


def test_memory_is_bounded(tmp_path: Path) -> None:
    deeds = {"little": "bytearray(1 << 28)", "much": "bytearray(1 << 30)"}
    assert told(ALL, deeds, tmp_path) == {"little": "done", "much": "MemoryError"}


def test_processor_time_is_bounded() -> None:
    assert run("sandbox.enter(1)", {"spin": "while True: pass"}).returncode in (-signal.SIGXCPU, -signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's")
def test_it_dies_with_the_process_that_started_it() -> None:
    child = SCRIPT.format(doors=ALL).replace("print(json.dumps(told))", "print(flush=True)\nwhile True: pass")
    parent = (
        "import os, subprocess, sys\n"
        f"command = [sys.executable, '-I', '-c', {child!r}, '{{}}', '/']\n"
        "child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 5
    while _runs(int(done.stdout)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
