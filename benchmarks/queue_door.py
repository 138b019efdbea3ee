"""`make bench-queue`: jobs by HTTP and by the broker at once, onto PostgreSQL and Redis: none lost, none run twice.

Half of the producers post, half are processes that import Celery and nothing of ours; every tenth message is sent
twice. What is printed of POST is what a client waits, while the broker's half comes in and the workers run both.
Nothing else should run on the machine meanwhile. Everything stays on loopback and in a temporary folder.
"""

import json
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

from servers import open_folder  # noqa: E402
from stack import ServersStack  # noqa: E402

from benchmarks import load  # noqa: E402
from ledger.inbox import QUEUE  # noqa: E402
from ledger.steps import TERMINAL  # noqa: E402
from ledger.tables import Job, Submission  # noqa: E402

Row = tuple[str, str, str]
PATIENCE_SECONDS = 3600
SENT_TWICE = 10  # every so manieth message
console = Console()

PRODUCER = """
import sys
from celery import Celery

broker, producer, count, queue, twice = sys.argv[1], sys.argv[2], *map(str, sys.argv[3:])
app = Celery(broker=broker)
sys.stdin.readline()
for number in range(int(count)):
    fields = {"id": f"{producer}-{number}", "job": {"kind": "noop"}}
    for _ in range(2 if number % int(twice) == 0 else 1):
        app.send_task("flashcards.submit", kwargs=fields, queue=queue)
"""


class Quiet(ServersStack):
    """As in production, but for where it is."""

    worker_count = 4

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, lease_seconds=60, reap_seconds=5, ring_again_seconds=30)

    def wait_until_ready(self, seconds: float = PATIENCE_SECONDS) -> None:
        super().wait_until_ready(seconds)


def bench(folder: Path, jobs: int = 2000, producers: int = 20) -> list[Row]:
    """Raises AssertionError where the gate does not hold."""
    stack = Quiet(folder)
    try:
        stack.start()
        return measure(stack, jobs, producers)
    finally:
        stack.close()


def measure(stack: Quiet, jobs: int, producers: int) -> list[Row]:
    each = jobs // producers
    senders = [start_sender(stack, f"line-{number}", each) for number in range(producers)]
    time.sleep(2)  # they have imported what they need, and wait
    started = time.perf_counter()
    with ThreadPoolExecutor(producers) as threads:
        posting = [threads.submit(post, stack.ports[number % len(stack.ports)], each) for number in range(producers)]
        for sender in senders:
            sender.stdin.write(b"go\n")
            sender.stdin.close()
        answers = [answer for done in posting for answer in done.result()]
        posted = time.perf_counter() - started
    assert [sender.wait(PATIENCE_SECONDS) for sender in senders] == [0] * producers
    sent = time.perf_counter() - started
    read = until(lambda: count(stack, Submission) == each * producers, started)
    ended = until(lambda: count(stack, Job, Job.state.in_(TERMINAL)) == 2 * each * producers, started)
    check(stack, [job_id for job_id, _ in answers], each, producers)
    waits = sorted(seconds for _, seconds in answers)
    middle, slow = statistics.median(waits), waits[int(len(waits) * 0.99)]
    return [
        ("jobs posted by HTTP", f"{len(answers):,}", f"gate: {2 * len(answers):,} jobs run, each once: held"),
        ("jobs sent by the broker, every tenth twice", f"{each * producers:,}", ""),
        ("producers of each sort", f"{producers}", ""),
        ("until the last POST was answered", f"{posted:.1f} s", ""),
        ("until the last message was sent", f"{sent:.1f} s", ""),
        ("until the last message was read", f"{read:.1f} s", ""),
        ("until the last job had ended", f"{ended:.1f} s", ""),
        ("POST /v1/jobs, median", f"{middle * 1000:.1f} ms", ""),
        ("POST /v1/jobs, p99", f"{slow * 1000:.1f} ms", ""),
        ("p99 / median", f"{slow / middle:.1f}x", "target < 10x"),
    ]


def start_sender(stack: Quiet, name: str, each: int) -> "subprocess.Popen[bytes]":
    words = [stack.redis.url, name, str(each), QUEUE, str(SENT_TWICE)]
    return subprocess.Popen([sys.executable, "-I", "-c", PRODUCER, *words], stdin=subprocess.PIPE)


def post(port: int, count: int) -> list[tuple[str, float]]:
    """One after the other over one connection: the job that each became, and how long its answer took."""
    message, answers = load.request("POST", "/v1/jobs", b'{"kind": "noop"}'), []
    with socket.create_connection(("127.0.0.1", port)) as line:
        for _ in range(count):
            started = time.perf_counter()
            status, body = load.exchange(line, message)
            took = time.perf_counter() - started
            assert status == 202, (status, body)
            answers.append((json.loads(body)["id"], took))
    return answers


def count(stack: Quiet, table: type[Job] | type[Submission], *where: object) -> int:
    with stack.ledger.read() as session:
        return session.scalar(select(func.count()).select_from(table).where(*where)) or 0  # type: ignore[arg-type]


def until(is_so, started: float) -> float:
    while not is_so():
        if time.perf_counter() - started > PATIENCE_SECONDS:
            raise TimeoutError("jobs or messages are left")
        time.sleep(0.1)
    return time.perf_counter() - started


def check(stack: Quiet, posted: list[str], each: int, producers: int) -> None:
    with stack.ledger.read() as session:
        states = dict(session.execute(select(Job.id, Job.state)).all())
        submitted = dict(session.execute(select(Submission.key, Submission.job_id)).all())
    assert len(set(posted)) == each * producers, "two posts were given one job"
    assert set(submitted) == {f"line-{n}-{m}" for n in range(producers) for m in range(each)}, "messages were lost"
    assert set(states) == {*posted, *submitted.values()}, "there are other jobs than those asked for"
    assert Counter(states.values()) == {"succeeded": 2 * each * producers}, Counter(states.values())
    lines = (json.loads(line) for line in stack.log_text().splitlines() if '"noop.ran"' in line)
    ran = Counter(line["job"] for line in lines)
    assert ran == Counter(dict.fromkeys(states, 1)), "a job was run twice, or not at all"


def main() -> None:
    with open_folder() as folder, console.status("measuring"):
        rows = bench(folder)
    table = Table("what", "figure", "bar", title="The queue as a door, measured on this machine in this run")
    for row in rows:
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
