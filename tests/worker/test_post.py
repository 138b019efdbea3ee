"""A courier as a process of its own, beside a worker that brings nothing."""

import subprocess
import sys

import httpx
import pytest
from hooks import add_webhook, told
from making import finished
from receivers import receiving
from service_process import running_service

from ledger.db import Database

MODULES = ("worker.post", "worker.post_check")


def start(module, service):
    return subprocess.Popen([sys.executable, "-m", module], env=service.environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_delivers_shows_that_it_lives_and_leaves_in_good_order(tmp_path):
    allowed = {"webhook_private_networks": '["127.0.0.1/32"]', "webhook_poll_seconds": 0.1, "courier": "false"}
    with receiving() as receiver, running_service(tmp_path / "home", threads=1, **allowed) as service:
        db = Database(f"sqlite:///{service.home / 'flashcards.db'}")
        add_webhook(db, receiver.url(), ["job.succeeded"])
        with httpx.Client(base_url=service.url, timeout=60) as api:
            finished(api, kind="noop")
        (waiting,) = told(db)
        assert (waiting.state, waiting.tries, receiver.requests) == ("pending", 0, [])
        assert "no courier" in start("worker.post_check", service).communicate(timeout=60)[1]

        courier = start("worker.post", service)
        try:
            for _ in range(600):
                if told(db)[0].state == "delivered":
                    break
                try:
                    courier.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
            check = start("worker.post_check", service)
            assert (check.communicate(timeout=60)[1], check.returncode) == ("", 0)
        finally:
            courier.terminate()
            said = courier.communicate(timeout=30)[1]
        assert courier.returncode == 0, said
        assert receiver.ids == [waiting.id]
        db.close()
