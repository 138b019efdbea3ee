"""A deploy: two APIs and two workers are restarted one after the other under load, and no client notices."""

import signal
import threading
import time

import pytest
from servers import open_folder
from soundness import assert_ledger_sound
from stack import running_stack

from flashcards import Client
from ledger.store import Store

CLIENTS = 4
TRAINING = {"kind": "train", "architecture": "blk_2_fil_8", "epochs": 30, "patience": 30, "batch_size": 32}


@pytest.fixture
def stack():
    with open_folder() as folder, running_stack("servers", folder, lease_seconds=20) as running:
        yield running


class User(threading.Thread):
    """Queues jobs and watches them, with the client that everybody has."""

    def __init__(self, url: str, over: threading.Event) -> None:
        super().__init__()
        self.url, self.over = url, over
        self.done = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with Client(self.url) as client:
                while not self.over.is_set():
                    self.one_round(client)
        except BaseException as failure:
            self.failure = failure

    def one_round(self, client: Client) -> None:
        job = client.submit({"kind": "noop"})
        assert [event.data["state"] for event in client.jobs.events(job.id)] == ["queued", "running", "succeeded"]
        assert client.jobs.wait(job.id, timeout=60).state == "succeeded"
        assert client.jobs.list(limit=5).items
        self.done += 1


def restart_one_after_the_other(stack) -> None:
    for part in stack.keeper.parts:
        starts = part.starts
        part.send(signal.SIGTERM)
        while part.starts == starts:
            time.sleep(0.05)
        stack.wait_until_ready()
        time.sleep(1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_client_with_retries_sees_no_failure(stack, digits_npz, tmp_path):
    path = tmp_path / "digits.npz"
    path.write_bytes(digits_npz)
    with Client(stack.url) as client:
        images = client.datasets.push(path)
        unbroken = client.jobs.wait(client.submit({**TRAINING, "dataset": images.id}).id)
        long = client.submit({**TRAINING, "dataset": images.id, "epochs": 5000, "patience": 5000, "max_attempts": 1})

        over = threading.Event()
        users = [User(stack.url, over) for _ in range(CLIENTS)]
        for user in users:
            user.start()
        restart_one_after_the_other(stack)
        over.set()
        for user in users:
            user.join()
        assert [user.failure for user in users] == [None] * CLIENTS
        assert min(user.done for user in users) >= 3

        client.jobs.cancel(long.id)
        outcomes = [attempt.outcome for attempt in client.jobs.wait(long.id).attempts]
        assert set(outcomes[:-1]) == {"released"}
        again = client.jobs.wait(client.submit({**TRAINING, "dataset": images.id}).id)
        assert [file.digest for file in again.artifacts] == [file.digest for file in unbroken.artifacts]
    assert_ledger_sound(stack.ledger, Store(stack.read_settings().store))
