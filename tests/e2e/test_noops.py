"""Many small jobs over PostgreSQL and Redis, both of which are restarted meanwhile: none is lost, none is run twice."""

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from patient import Patient
from servers import open_folder
from soundness import assert_ledger_sound
from sqlalchemy import func, select
from stack import ServersStack, running_stack

from ledger.steps import TERMINAL
from ledger.tables import Job

CLIENTS = 20
RESTARTS = ("redis.stop", "postgres.stop", "redis.kill", "postgres.kill")


@pytest.fixture
def stack():
    # No worker dies here: what is run twice, or later than its lease, would be the fault of the servers' restarts.
    with open_folder() as folder, running_stack("servers", folder, lease_seconds=20) as running:
        yield running


def post(stack: ServersStack, numbers: range, posted: list[str]) -> None:
    patient = Patient()
    try:
        for number in numbers:
            answer = patient.ask("POST", f"{stack.url}/v1/jobs", f"noop-{number}", json={"kind": "noop"})
            assert answer.status_code == 202, answer.text
            posted.append(answer.json()["id"])
    finally:
        patient.close()


def restart_servers(stack: ServersStack, posted: list[str], jobs: int) -> None:
    """Each at its share of the way."""
    for turn, what in enumerate(RESTARTS, 1):
        while len(posted) < jobs * turn // (len(RESTARTS) + 1):
            time.sleep(0.01)
        name, verb = what.split(".")
        server = getattr(stack, name)
        getattr(server, verb)()
        time.sleep(0.5)
        server.start()


def wait_for_the_end(stack: ServersStack, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with stack.ledger.read() as session:
            if not session.scalar(select(func.count()).where(Job.state.not_in(TERMINAL))):
                return
        time.sleep(0.2)
    raise TimeoutError("jobs are left")


def times_run(stack: ServersStack) -> Counter[str]:
    lines = (line for line in stack.log_text().splitlines() if '"noop.ran"' in line)
    return Counter(json.loads(line)["job"] for line in lines)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(900)
@pytest.mark.parametrize("jobs", [2000])
def test_none_is_lost_and_none_is_run_twice(stack, jobs):
    posted: list[str] = []
    restarting = threading.Thread(target=restart_servers, args=(stack, posted, jobs))
    restarting.start()
    with ThreadPoolExecutor(CLIENTS) as clients:
        shares = [range(first, jobs, CLIENTS) for first in range(CLIENTS)]
        list(clients.map(lambda numbers: post(stack, numbers, posted), shares))
    restarting.join()
    wait_for_the_end(stack, seconds=300)
    assert len(set(posted)) == jobs
    with stack.ledger.read() as session:
        rows = session.execute(select(Job.id, Job.state, Job.attempt)).all()
    assert {row.id for row in rows} == set(posted)
    assert Counter(row.state for row in rows) == {"succeeded": jobs}
    assert times_run(stack) == Counter(posted)
    assert_ledger_sound(stack.ledger)
