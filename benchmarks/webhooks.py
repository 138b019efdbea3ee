"""`make bench-webhooks`: deliveries to a receiver that fails half the time, hangs, redirects inside and restarts.

On PostgreSQL and Redis with two workers, which are killed meanwhile, and whose secret is changed. Everything stays on
loopback and in a temporary folder; another address of this machine stands for the network that nothing may go to.
"""

import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select, update

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

from servers import open_folder  # noqa: E402
from service_process import free_port  # noqa: E402
from stack import Stack, running_stack  # noqa: E402

from ledger.tables import Delivery, DeliveryTry, Webhook  # noqa: E402

FORBIDDEN = "127.0.0.3"
CLIENTS = 8
console = Console()
Row = tuple[str, str, str, bool]


class AsJson(list[Any]):
    """A setting that reads the same in an environment."""

    __str__ = json.dumps  # type: ignore[assignment]


class Receiver:
    """The process, its account, and its restarts."""

    def __init__(self, folder: Path, forbidden: str, hang_seconds: float) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self.restarts = 0
        self._account = folder / "account.jsonl"
        self._more = (forbidden, str(hang_seconds))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, secret: str) -> None:
        command = [sys.executable, "-m", "benchmarks.receiver", str(self.port), str(self._account), secret, *self._more]
        self._process = subprocess.Popen(command, cwd=ROOT)
        self._secret = secret
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Without warning, and away for a moment."""
        self.stop()
        time.sleep(1)
        self.start(self._secret)
        self.restarts += 1

    def account(self) -> list[dict[str, str]]:
        """A kill may leave half a line at its end."""
        lines = self._account.read_text().splitlines() if self._account.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def taken(self) -> set[str]:
        return {line["id"] for line in self.account() if line["done"] == "take"}


@contextmanager
def canary() -> Iterator[tuple[int, list[object]]]:
    """Whoever connects to the forbidden address is on the list."""
    with socket.create_server((FORBIDDEN, 0)) as listener:
        came: list[object] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, peer = listener.accept()
                    came.append(peer)
                    connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1], came
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def post_jobs(stack: Stack, count: int) -> None:
    def post(_: int) -> None:
        httpx.post(f"{stack.url}/v1/jobs", json={"kind": "noop"}, timeout=60).raise_for_status()

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(post, range(count)))


def create(stack: Stack, url: str) -> dict[str, Any]:
    answer = httpx.post(f"{stack.url}/v1/webhooks", json={"url": url, "events": ["job.succeeded"]}, timeout=60)
    made: dict[str, Any] = answer.raise_for_status().json()
    return made


def move_inside(stack: Stack, webhook_id: str, url: str) -> None:
    """As a name would that is looked up again: what was checked when the webhook was made has changed since."""
    with stack.ledger.write() as session:
        session.execute(update(Webhook).where(Webhook.id == webhook_id).values(url=url))


def when(share: float, count: int, receiver: Receiver, what: Callable[[], object], seconds: float) -> None:
    """Once this share has been taken, or everything has stopped for too long."""
    wait_until(lambda: len(receiver.taken()) >= share * count, seconds)
    what()


def wait_until(true: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.2)


def kill_a_worker(stack: Stack) -> None:
    stack.processes("worker")[0].kill()


def trouble(stack: Stack, receiver: Receiver, webhook_id: str, count: int, seconds: float) -> None:
    """Each in its turn, while deliveries are under way."""
    steps: list[tuple[float, Callable[[], object]]] = [
        (0.1, receiver.restart),
        (0.25, lambda: kill_a_worker(stack)),
        (0.4, lambda: httpx.post(f"{stack.url}/v1/webhooks/{webhook_id}/rotate", timeout=60).raise_for_status()),
        (0.55, receiver.restart),
        (0.7, lambda: kill_a_worker(stack)),
        (0.85, receiver.restart),
    ]
    for share, what in steps:
        when(share, count, receiver, what, seconds)


def deliveries(stack: Stack, webhook_id: str) -> list[Delivery]:
    with stack.ledger.read() as session:
        return list(session.scalars(select(Delivery).where(Delivery.webhook_id == webhook_id)))


def delivered(stack: Stack, webhook_id: str) -> int:
    theirs = (Delivery.webhook_id == webhook_id, Delivery.state == "delivered")
    with stack.ledger.read() as session:
        return session.scalar(select(func.count()).where(*theirs)) or 0


def bench(
    folder: Path, count: int = 1000, timeout: float = 10, seconds: float = 1800, name: str = "servers"
) -> list[Row]:
    settings = {
        "webhook_private_networks": AsJson(["127.0.0.1/32"]),
        "webhook_pauses": AsJson([0.2, 0.5] + [1.0] * 60),
        "webhook_seconds": timeout,
        "webhook_poll_seconds": 0.2,
    }
    with canary() as (port, came), running_stack(name, folder / "stack", **settings) as stack:
        forbidden = f"http://{FORBIDDEN}:{port}/"
        receiver = Receiver(folder, forbidden, timeout * 3)
        webhook, inside = create(stack, receiver.url), create(stack, receiver.url)
        move_inside(stack, inside["id"], forbidden)
        asked = {"url": forbidden, "events": ["job.failed"]}
        refused = httpx.post(f"{stack.url}/v1/webhooks", json=asked, timeout=60).status_code
        try:
            receiver.start(webhook["secret"])
            started = time.monotonic()
            troubling = threading.Thread(target=trouble, args=(stack, receiver, webhook["id"], count, seconds))
            troubling.start()
            post_jobs(stack, count)
            wait_until(lambda: delivered(stack, webhook["id"]) == count, seconds)
            took = time.monotonic() - started
            troubling.join()
        finally:
            receiver.stop()
        return judge(stack, receiver, webhook["id"], inside["id"], count, took, len(came), refused)


def judge(
    stack: Stack, receiver: Receiver, webhook_id: str, inside_id: str, count: int, took: float, came: int, refused: int
) -> list[Row]:
    rows, account = deliveries(stack, webhook_id), receiver.account()
    ids: dict[str, set[str]] = defaultdict(set)
    for line in account:
        ids[line["job"]].add(line["id"])
    taken = Counter(line["id"] for line in account if line["done"] == "take")
    done = Counter(line["done"] for line in account)
    states = Counter(row.state for row in rows)
    with stack.ledger.read() as session:
        tried_inside = session.scalar(
            select(func.count()).select_from(DeliveryTry).join(Delivery).where(Delivery.webhook_id == inside_id)
        )
        inside = Counter(session.scalars(select(Delivery.state).where(Delivery.webhook_id == inside_id)))
    every = {row.id for row in rows} == set(taken) and len(rows) == count
    same = len(ids) == count and all(len(known) == 1 for known in ids.values())
    return [
        ("events", f"{count}", "", True),
        ("delivered at least once", f"{len(taken)}", "gate: all", every),
        (
            "events that came under more than one id",
            f"{sum(len(known) > 1 for known in ids.values())}",
            "gate: 0",
            same,
        ),
        ("given up", f"{states['given_up']}", "gate: 0", states == {"delivered": count}),
        ("connections to a private address", f"{came}", "gate: 0", came == 0),
        (f"tries refused by us for their address ({dict(inside)})", f"{tried_inside}", "> 0", bool(tried_inside)),
        ("answer to a webhook at a private address", f"{refused}", "gate: 422", refused == 422),
        (f"requests that the receiver saw ({dict(done)})", f"{len(account)}", "", True),
        ("tries a delivery, at most", f"{max(row.tries for row in rows)}", "", True),
        ("taken more than once", f"{sum(times > 1 for times in taken.values())}", "", True),
        ("restarts of the receiver, kills of workers", f"{receiver.restarts}, 2", "", receiver.restarts == 3),
        ("from the first job to the last delivery", f"{took:.0f} s", "", True),
    ]


def main() -> None:
    table = Table("what", "figure", "bar", "", title="Webhooks, against a receiver as bad as they come")
    with open_folder() as folder, console.status("jobs end, and somebody is told"):
        rows = bench(folder, *(int(word) for word in sys.argv[1:2]))
    for what, figure, bar, holds in rows:
        table.add_row(what, figure, bar, "" if holds else "NOT MET")
    console.print(table)
    if not all(holds for *_, holds in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
