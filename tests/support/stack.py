"""The service as it is run, in both ways: everything on one machine, or many processes over PostgreSQL and Redis.

Both are looked after by a keeper, so that what a test kills comes back, and both can be broken in the same ways.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
from keeper import Keeper, Part
from proxy import Proxy
from servers import Postgres, Redis, Server
from service_process import free_port
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from ledger.db import Database
from ledger.settings import Settings
from ledger.tables import Job, Worker

READY_SECONDS = 60
#: So that a kill is got over in seconds. Everything else is as in production.
TEMPO = {
    "threads": 1,
    "lease_seconds": 3,
    "reap_seconds": 0.5,
    "ring_again_seconds": 2,
    "resume_seconds": 0.3,
    "log_format": "json",
}


class Stack:
    """A service in a folder of its own."""

    name = ""
    worker_count = 1

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.mark = folder / "tmp"  # TMPDIR reaches even a runner: by it a process is known as ours
        self.logs = folder / "logs"
        for path in (self.home, self.mark, self.logs):
            path.mkdir(parents=True, exist_ok=True)
        self.servers: list[Server] = self._make_servers()
        self.settings = {**TEMPO, "home": self.home, **self._places(), **settings}
        self.ledger = Database(self.read_settings().database)
        self.keeper = Keeper(self._make_parts())
        self._client = httpx.Client(timeout=5, trust_env=False)

    # What the two have each for themselves

    def _make_servers(self) -> list[Server]:
        return []

    def _places(self) -> dict[str, object]:
        return {}

    def _make_parts(self) -> list[Part]:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """Where a client goes."""
        raise NotImplementedError

    @property
    def api_urls(self) -> list[str]:
        return [self.url]

    def empty_broker(self) -> None:
        raise NotImplementedError

    # Up and down

    def start(self) -> None:
        for server in self.servers:
            server.start()
        self.keeper.start()
        self.wait_until_ready()

    def stop(self) -> list[int]:
        """TERM for every process; the servers stay."""
        codes = self.keeper.stop()
        left = psutil.wait_procs(self.processes(), timeout=10)[1]
        assert not left, f"left behind: {left}"
        return codes

    def kill_everything(self) -> None:
        """Every process of the service at once and without warning, then up again."""
        self.keeper.rest()
        self.kill_all_processes()
        self.keeper.start()

    def close(self) -> None:
        """However the test ended, nothing of it runs on."""
        self.keeper.rest()
        self.kill_all_processes()
        for server in self.servers:
            with suppress(Exception):
                server.stop()
        self.ledger.close()
        self._client.close()

    def kill_all_processes(self) -> None:
        processes = self.processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for part in self.keeper.parts:
            if part.process is not None:
                part.wait()
        psutil.wait_procs(processes, timeout=10)

    def wait_until_ready(self, seconds: float = READY_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.is_ready():
                return
            time.sleep(0.05)
        raise TimeoutError(f"not ready after {seconds} s; see {self.logs}")

    def is_ready(self) -> bool:
        """Every process is up, every API says so, and every worker is on record."""
        if not all(part.is_alive() for part in self.keeper.parts):
            return False
        alive = {process.pid for process in self.processes("worker")}
        if len(alive) < self.worker_count or not all(self._says_ready(url) for url in self.api_urls):
            return False
        try:
            with self.ledger.read() as session:
                return alive <= set(session.scalars(select(Worker.pid)))
        except DBAPIError:
            return False

    def _says_ready(self, url: str) -> bool:
        try:
            return self._client.get(f"{url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    # What runs, and what is on record

    def processes(self, module: str | None = None) -> list[psutil.Process]:
        """Ours that are alive, of one module or all: also those whose parent is gone."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if module is not None and process.cmdline()[-2:] != ["-m", module]:
                    continue
                if process.environ().get("TMPDIR") == str(self.mark) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def process(self, module: str) -> psutil.Process:
        (found,) = self.processes(module)
        return found

    def working_runner(self, worker_pid: int | None = None) -> psutil.Process | None:
        """A child of a nursery, which is a child of its worker and looks the same."""
        everyone = {process.pid: process for process in self.processes("worker.runner")}
        for process in everyone.values():
            nursery = everyone.get(_parent(process) or 0)
            if nursery is not None and (worker_pid is None or _parent(nursery) == worker_pid):
                return process
        return None

    def worker_of(self, job_id: str) -> psutil.Process:
        """The process that holds this job."""
        statement = select(Worker.pid).join(Job, Job.worker_id == Worker.id).where(Job.id == job_id)
        with self.ledger.read() as session:
            return psutil.Process(session.scalars(statement).one())

    def read_settings(self) -> Settings:
        return Settings(**self.settings)  # type: ignore[arg-type]

    def log_text(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.logs.glob("*.log")))

    def _part(self, name: str, module: str, **settings: object) -> Part:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("FLASHCARDS_")}
        ours = {f"FLASHCARDS_{key.upper()}": str(value) for key, value in {**self.settings, **settings}.items()}
        environment = {**inherited, **ours, "TMPDIR": str(self.mark)}
        return Part(name, module, environment, self.logs / f"{name}.log")


class EmbeddedStack(Stack):
    """`flashcards serve`: SQLite, and a broker of files."""

    name = "embedded"

    def _make_parts(self) -> list[Part]:
        self.port = free_port()
        return [self._part("serve", "service", port=self.port)]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def empty_broker(self) -> None:
        shutil.rmtree(self.home / "broker", ignore_errors=True)


class ServersStack(Stack):
    """`flashcards api` and `flashcards worker`, two of each, over PostgreSQL and Redis and one shared folder."""

    name = "servers"
    worker_count = 2
    api_count = 2

    def _make_servers(self) -> list[Server]:
        self.postgres, self.redis = Postgres(self.folder / "postgres"), Redis(self.folder / "redis")
        return [self.postgres, self.redis]

    def _places(self) -> dict[str, object]:
        return {"database_url": self.postgres.url, "broker_url": self.redis.url}

    def _make_parts(self) -> list[Part]:
        self.ports = [free_port() for _ in range(self.api_count)]
        self.proxy = Proxy(self.ports)
        apis = [self._part(f"api-{n}", "service.api", port=port) for n, port in enumerate(self.ports)]
        return [*apis, *(self._part(f"worker-{n}", "worker") for n in range(self.worker_count))]

    def start(self) -> None:
        self.proxy.start()
        super().start()

    def close(self) -> None:
        super().close()
        self.proxy.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}"

    @property
    def api_urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def empty_broker(self) -> None:
        self.redis.empty()


STACKS: dict[str, type[Stack]] = {"embedded": EmbeddedStack, "servers": ServersStack}


@contextmanager
def running_stack(name: str, folder: Path, **settings: object) -> Iterator[Stack]:
    stack = STACKS[name](folder, **settings)
    try:
        stack.start()
        yield stack
    finally:
        stack.close()


def _parent(process: psutil.Process) -> int | None:
    try:
        return int(process.ppid())
    except psutil.Error:
        return None
