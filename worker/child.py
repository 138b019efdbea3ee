"""A runner process, seen from the supervisor: born without credentials, fed one assignment, listened to, stopped."""

import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from pydantic import ValidationError

from worker.messages import Assignment, Drawing, Said, said

#: Nothing else of our environment reaches a runner: no database, no broker, no store, no key.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
LONGEST_LINE = 1024**2
LONGEST_LETTER = 256
#: Where nobody is left to say how a runner ended: its nursery was killed, and most likely both were.
UNTOLD = -signal.SIGKILL


class LogLine(str):
    """A line of the runner's stderr."""


class Child:
    """Asked for at once, born when the nursery comes to it; an assignment waits in the pipe meanwhile."""

    def __init__(self, nursery: socket.socket) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_err, theirs_err = os.pipe()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        self._stdin = os.fdopen(ours_in, "wb")
        self.heard: queue.SimpleQueue[Said | LogLine] = queue.SimpleQueue()
        self._ears = [
            threading.Thread(target=self._hear_messages, args=(os.fdopen(ours_out, "rb"),), daemon=True),
            threading.Thread(target=self._hear_log, args=(os.fdopen(ours_err, "rb"),), daemon=True),
        ]
        for ear in self._ears:
            ear.start()
        self._pid: int | None = None
        self._pidfd: int | None = None
        self._code: int | None = None
        self._is_severed = False  # the nursery is gone
        try:
            socket.send_fds(nursery, [b"!"], [theirs_in, theirs_out, theirs_err, theirs.fileno()])
        except BrokenPipeError:
            self._stdin.close()
            self._control.close()
            raise
        finally:
            for end in (theirs_in, theirs_out, theirs_err):
                os.close(end)
            theirs.close()

    @property
    def pid(self) -> int:
        """Waits for the birth."""
        while self._pid is None:
            if not self.is_alive():
                raise ProcessLookupError("it was never born")
            time.sleep(0.01)
        return self._pid

    def is_alive(self) -> bool:
        """Also before it is born."""
        self._read_letters()
        if self._code is None and self._is_severed and (self._pidfd is None or _has_ended(self._pidfd)):
            self._code = UNTOLD
        return self._code is None

    def assign(self, assignment: Assignment | Drawing) -> None:
        with suppress(BrokenPipeError):  # it died while it waited; its exit code will say so
            self._stdin.write(assignment.model_dump_json().encode() + b"\n")
            self._stdin.flush()

    def ask_to_stop(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def close(self) -> int:
        """Whatever it was doing, it is gone when this returns."""
        self.kill()
        while self.is_alive():
            time.sleep(0.005)
        assert self._code is not None
        if self._pid is not None:
            for ear in self._ears:
                ear.join(timeout=5)
        with suppress(BrokenPipeError):
            self._stdin.close()
        self._control.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        return self._code

    def exit_code(self) -> int | None:
        """Once it has exited and everything it said has been heard."""
        if self.is_alive() or (self._pid is not None and any(ear.is_alive() for ear in self._ears)):
            return None
        return self._code

    def _signal(self, number: int) -> None:
        if not self.is_alive():
            return
        if self._pid is None:
            # What is not born needs no signal: with its socket closed the nursery will not bear it.
            self._code = -number
            self._control.close()
            self._stdin.close()
        elif self._is_severed:
            self._signal_it_alone(number)
        else:
            try:
                os.killpg(self._pid, number)
            except ProcessLookupError:  # just born: it has no group of its own yet, and nobody else in it
                self._signal_it_alone(number)

    def _signal_it_alone(self, number: int) -> None:
        assert self._pidfd is not None
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def _read_letters(self) -> None:
        """What the nursery wrote: first pid and pidfd, then the exit code."""
        while not self._is_severed and self._code is None:
            try:
                letter, descriptors, _, _ = socket.recv_fds(self._control, LONGEST_LETTER, 1)
            except BlockingIOError:
                return
            except ConnectionResetError:
                letter = b""
            if not letter:
                self._is_severed = True
                return
            told = json.loads(letter)
            if "pid" in told:
                self._pid, (self._pidfd,) = told["pid"], descriptors
            else:
                self._code = told["code"]

    def _hear_messages(self, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(LONGEST_LINE):
                try:
                    self.heard.put(said.validate_json(line))
                except ValidationError:
                    self.heard.put(LogLine(f"the runner said something odd: {line[:200]!r}"))

    def _hear_log(self, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(8192):
                self.heard.put(LogLine(line.decode(errors="replace").rstrip()))


def _has_ended(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], 0)[0])


class Parent:
    """The nursery, as the supervisor sees it: started before the first job, and again whenever it has died."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-I", "-m", "worker.runner")) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._closed = False

    def prepare(self) -> None:
        with self._lock:
            if not self._closed:
                self._open_line()

    def bear(self) -> Child:
        """Asked for in this moment; it is there at once where the nursery has imported what it needs."""
        with self._lock:
            while True:
                try:
                    return Child(self._open_line())
                except BrokenPipeError:  # it has died since it was looked at
                    self._end()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._end()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _open_line(self) -> socket.socket:
        if self._process is not None and self._process.poll() is None:
            assert self._line is not None
            return self._line
        self._end()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                self._command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=runner_environment(),
                start_new_session=True,
            )
        return self._line

    def _end(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def runner_environment() -> dict[str, str]:
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    # Threads that spin while they wait for each other starve where cores are shared, and training crawls. A short
    # spin is as fast as the default on an idle machine and gives way on a busy one.
    environment["GOMP_SPINCOUNT"] = "10000"
    # numpy's own pool would spin beside torch's; what is left to numpy are small matrices.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    return environment
