"""The service as its user starts it: a real process on a free port, with a home folder of its own."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil


def free_port() -> int:
    """Below those that the kernel gives to clients: who asks for a server that is down could else become its port."""
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class ServiceProcess:
    """`flashcards serve`, with handles to look at and to kill its parts."""

    def __init__(self, home: Path, environment: dict[str, str] | None = None, **settings: object) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = home.with_suffix(".log")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FLASHCARDS_")},
            "FLASHCARDS_HOME": str(home),
            "FLASHCARDS_PORT": str(self.port),
            **{f"FLASHCARDS_{name.upper()}": str(value) for name, value in settings.items()},
            **(environment or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "service"], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        self.wait_until_ready()

    def wait_until_ready(self, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process is not None and self.process.poll() is not None:
                raise RuntimeError(f"the service ended: {self.log.read_text()}")
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise TimeoutError(self.log.read_text())

    def tree(self) -> list[psutil.Process]:
        assert self.process is not None
        top = psutil.Process(self.process.pid)
        return [top, *top.children(recursive=True)]

    def part(self, module: str) -> psutil.Process:
        """The one process that runs this module, for example `worker` or `service.api`."""
        (found,) = self.parts(module)
        return found

    def parts(self, module: str) -> list[psutil.Process]:
        return [process for process in self.tree() if process.cmdline()[-2:] == ["-m", module]]

    def kill_tree(self) -> None:
        """Everything at once and without warning, as a power cut of the process table."""
        assert self.process is not None
        for process in self.tree():
            process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        children = self.tree()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        left = psutil.wait_procs(children, timeout=5)[1]
        assert not left, f"left behind: {left}"
        return code


@contextmanager
def running_service(home: Path, **settings: object):
    service = ServiceProcess(home, **settings)
    try:
        service.start()
        yield service
    finally:
        if service.process is not None and service.process.poll() is None:
            for process in service.tree():
                process.kill()
            service.process.wait()
