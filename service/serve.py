"""The embedded default: one command that migrates, starts API and worker, and looks after both."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import IO

from filelock import FileLock, Timeout
from sqlalchemy.exc import DBAPIError

from flashcards import leash
from ledger import lifecycle, workers
from ledger.db import Database
from ledger.logs import configure_logs
from ledger.schema import ensure_schema
from ledger.settings import Settings, load_settings
from service.bind import check_bind, settle_port

READY_SECONDS = 60
STOP_SECONDS = 15
LONGEST_PAUSE_SECONDS = 30
EARLY_SECONDS = 5  # a part that dies so soon will most likely do so again


@dataclass
class Part:
    """A process of the service, restarted when it dies; each early death doubles the pause before the next start."""

    name: str
    module: str
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    pause: float = 0.5
    start_at: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self.environment, leash.VARIABLE: "1"},
            start_new_session=True,  # Ctrl-C reaches us alone, and we end the parts in order
        )
        threading.Thread(target=self._prefix, args=(self.process.stdout,), daemon=True).start()

    def plan_restart(self) -> float:
        lived = time.monotonic() - self.started_at
        self.pause = 0.5 if lived > EARLY_SECONDS else min(self.pause * 2, LONGEST_PAUSE_SECONDS)
        self.process, self.start_at = None, time.monotonic() + self.pause
        return self.pause

    def _prefix(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            print(f"{self.name:>6} | {line.decode(errors='replace').rstrip()}", flush=True)


def main() -> None:
    settings = load_settings()
    check_bind(settings)
    configure_logs(settings)
    leash.leave_with_parent()
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(settings.home / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        sys.exit(
            f"flashcards: another `flashcards serve` is using {settings.home}; FLASHCARDS_HOME picks another folder"
        )
    with lock:
        serve(settle_port(settings))


def serve(settings: Settings) -> None:
    db = open_record(settings)
    # Whatever rang before is in the ledger; old rings and half-written ones are not needed. Other queues stay: what
    # producers sent, and what was announced, is nowhere else.
    for queue in ("cpu", "gpu"):
        shutil.rmtree(settings.broker_folder / queue, ignore_errors=True)
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    os.environ["FLASHCARDS_PORT"] = str(settings.port)
    # One metrics port is the worker's: the API of the same machine has /metrics beside its other routes.
    parts = [Part("api", "service.api", {"FLASHCARDS_METRICS_PORT": "0"}), Part("worker", "worker")]
    threading.Thread(target=greet, args=(settings, stopping), daemon=True).start()
    try:
        while not stopping.wait(0.1):
            for part in parts:
                look_after(part, db)
    finally:
        stop(parts)
        db.close()


def open_record(settings: Settings) -> Database:
    db = Database(settings.database)
    try:
        ensure_schema(db)
        for worker_id in workers.dead_here(db):
            bury(db, worker_id, "its worker was gone when the service started")
    except DBAPIError as error:
        sys.exit(f"flashcards: the record cannot be opened: {error.orig}")
    return db


def look_after(part: Part, db: Database) -> None:
    if part.process is None:
        if time.monotonic() >= part.start_at:
            part.start()
        return
    code = part.process.poll()
    if code is None:
        return
    pid = part.process.pid
    pause = part.plan_restart()
    print(f" serve | {part.name} ended with code {code}; starting it again in {pause:g} s", flush=True)
    if part.name == "worker":
        try:
            bury_process(db, pid)
        except DBAPIError as error:
            print(f" serve | its jobs wait for their leases, the record is away: {error.orig}", flush=True)


def bury_process(db: Database, pid: int) -> None:
    if worker_id := workers.by_pid(db, pid):
        bury(db, worker_id, "its worker died")


def bury(db: Database, worker_id: str, reason: str) -> None:
    """Seen to be dead: its jobs need not wait for their leases."""
    lifecycle.expire_worker(db, worker_id, reason)
    workers.leave(db, worker_id)


def greet(settings: Settings, stopping: threading.Event) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{settings.port}"
    deadline = time.monotonic() + READY_SECONDS
    while not stopping.wait(0.1) and time.monotonic() < deadline:
        if is_ready(address):
            print(f"\n  Flashcards is ready at {address}   (data in {settings.home})", flush=True)
            print("  Open it in a browser: the first steps are there.", flush=True)
            print(f"  Try:  curl {address}/v1/jobs\n", flush=True)
            return


def is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=2) as answer:
            return bool(json.load(answer)["ready"])
    except (OSError, urllib.error.URLError, ValueError):
        return False


def stop(parts: list[Part]) -> None:
    """All at once with TERM, so that the worker can save and give back; KILL for what does not go."""
    running = [(part.name, part.process) for part in parts if part.process is not None and part.process.poll() is None]
    for _, process in running:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for name, process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            print(f" serve | {name} did not go within {STOP_SECONDS} s, and was killed", flush=True)
            process.kill()
            process.wait()
