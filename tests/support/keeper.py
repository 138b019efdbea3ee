"""Looks after processes as systemd or compose would: what dies is started again, until somebody says stop."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from flashcards import leash

LOOK_SECONDS = 0.05
RESTART_SECONDS = 0.2
STOP_SECONDS = 30


class Part:
    """One command, as `flashcards serve`, `api` and `worker` become it."""

    def __init__(self, name: str, module: str, environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.module = module
        self.environment = dict(environment)
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        self._let_go()
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module],
                env={**self.environment, "PYTHONSAFEPATH": "1", leash.VARIABLE: "1"},
                stdin=subprocess.PIPE,  # its leash: nothing outlives the tests
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        assert self.process is not None
        code = self.process.wait(seconds)
        self._let_go()
        return code

    def _let_go(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()


class Keeper:
    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        for part in self.parts:
            part.start()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, args=(self._over,), name="keeper", daemon=True)
        self._thread.start()

    def rest(self) -> None:
        """What ends from now on stays ended."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def stop(self) -> list[int]:
        """TERM for all, and the exit codes."""
        self.rest()
        for part in self.parts:
            part.send(signal.SIGTERM)
        return [part.wait() for part in self.parts]

    def _keep(self, over: threading.Event) -> None:
        start_at: dict[str, float] = {}
        while not over.wait(LOOK_SECONDS):
            for part in self.parts:
                if part.is_alive():
                    start_at.pop(part.name, None)
                elif time.monotonic() >= start_at.setdefault(part.name, time.monotonic() + RESTART_SECONDS):
                    part.start()
