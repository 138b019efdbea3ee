"""A runner process, seen from the supervisor: started without credentials, fed one assignment, listened to, stopped."""

import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO

from pydantic import ValidationError

from worker.messages import Assignment, Said, said

#: Nothing else of our environment reaches a runner: no database, no broker, no store, no key.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
LONGEST_LINE = 1024**2


class LogLine(str):
    """A line of the runner's stderr."""


def runner_environment() -> dict[str, str]:
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    # Threads that spin while they wait for each other starve where cores are shared, and training crawls. A short
    # spin is as fast as the default on an idle machine and gives way on a busy one.
    environment["GOMP_SPINCOUNT"] = "10000"
    # numpy's own pool would spin beside torch's; what is left to numpy are small matrices.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    return environment


class Child:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "worker.runner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=runner_environment(),
            start_new_session=True,
        )
        self.heard: queue.SimpleQueue[Said | LogLine] = queue.SimpleQueue()
        self._ears = [
            threading.Thread(target=self._hear_messages, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._hear_log, args=(self._process.stderr,), daemon=True),
        ]
        for ear in self._ears:
            ear.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def assign(self, assignment: Assignment) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with suppress(BrokenPipeError):  # it died while it waited; its exit code will say so
            pipe.write(assignment.model_dump_json().encode() + b"\n")
            pipe.flush()

    def ask_to_stop(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def close(self) -> int:
        """Whatever it was doing, it is gone when this returns."""
        self.kill()
        code = self._process.wait()
        for ear in self._ears:
            ear.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        return code

    def exit_code(self) -> int | None:
        """Once it has exited and everything it said has been heard."""
        if self.is_alive() or any(ear.is_alive() for ear in self._ears):
            return None
        return self._process.returncode

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _hear_messages(self, pipe: IO[bytes]) -> None:
        while line := pipe.readline(LONGEST_LINE):
            try:
                self.heard.put(said.validate_json(line))
            except ValidationError:
                self.heard.put(LogLine(f"the runner said something odd: {line[:200]!r}"))

    def _hear_log(self, pipe: IO[bytes]) -> None:
        while line := pipe.readline(8192):
            self.heard.put(LogLine(line.decode(errors="replace").rstrip()))


class Spare:
    """One runner that has imported torch already and waits, so that a job does not wait for the import."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Child | None = None
        self._closed = False

    def prepare(self) -> None:
        with self._lock:
            if not self._closed and (self._waiting is None or not self._waiting.is_alive()):
                self._waiting = Child()

    def take(self) -> Child:
        with self._lock:
            child, self._waiting = self._waiting, None
        return child if child is not None and child.is_alive() else Child()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._waiting is not None:
                self._waiting.close()
