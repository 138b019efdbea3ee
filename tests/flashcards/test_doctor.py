import json
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest
from service_process import ServiceProcess, free_port
from typer.testing import CliRunner

from flashcards import Client
from flashcards.cli import app
from flashcards.contract.tokens import new_token


def ask(url: str, *words: str, exit_code: int, **environment: str) -> str:
    done = CliRunner().invoke(app, ["doctor", *words], env={"FLASHCARDS_URL": url, **environment})
    assert done.exit_code == exit_code, done.output
    return done.stdout


def examine(url: str, exit_code: int, **environment: str) -> dict[str, dict]:
    answer = json.loads(ask(url, "--json", exit_code=exit_code, **environment))
    assert answer["ok"] == (exit_code == 0)
    return {finding["what"]: finding for finding in answer["findings"]}


@pytest.fixture(scope="module")
def workerless(tmp_path_factory):
    """An API alone: nobody takes the jobs."""
    alone = ServiceProcess(tmp_path_factory.mktemp("workerless") / "home")
    with alone.log.open("wb") as log:
        alone.process = subprocess.Popen(
            [sys.executable, "-m", "service.api"], env=alone.environment, stdout=log, stderr=log
        )
    while not _answers(alone.url):
        assert alone.process.poll() is None, alone.log.read_text()
        time.sleep(0.05)
    yield alone
    alone.process.terminate()
    alone.process.wait(timeout=30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=5).is_success
    except httpx.TransportError:
        return False


@contextmanager
def stranger(greeting: bytes):
    """Somebody else on the port, who says the same to everyone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = (
            "import socket, sys\n"
            "with socket.socket(fileno=int(sys.argv[1])) as listener:\n"
            "    while True:\n"
            "        near, _ = listener.accept()\n"
            "        with near:\n"
            "            near.recv(65536)\n"
            "            near.sendall(bytes.fromhex(sys.argv[2]))\n"
        )
        command = [sys.executable, "-c", script, str(listener.fileno()), greeting.hex()]
        process = subprocess.Popen(command, pass_fds=[listener.fileno()])
        yield listener.getsockname()[1]
        process.kill()
        process.wait()


def test_a_service_that_is_well(service):
    told = ask(service.url, exit_code=0)
    assert "✗" not in told
    found = examine(service.url, exit_code=0)
    assert found["key"]["found"] == "none is needed"
    assert found["queue cpu"]["found"].startswith("1 worker on cpu")
    assert "GiB free" in found["disk"]["found"]
    assert [part for part in ("service", "database", "broker", "store", "worker") if not found[part]["ok"]] == []


def test_without_a_worker_it_says_what_to_start(workerless):
    with Client(workerless.url) as client:
        client.submit({"kind": "noop"})
    found = examine(workerless.url, exit_code=1)
    assert [what for what, finding in found.items() if finding["ok"] is False] == ["worker", "queue cpu"]
    assert "flashcards worker --queue cpu" in found["queue cpu"]["advice"]
    told = ask(workerless.url, exit_code=1).splitlines()
    wrong = next(number for number, line in enumerate(told) if line.startswith("✗ worker"))
    assert "flashcards worker" in told[wrong + 1]


@pytest.mark.parametrize("key", ["", new_token()], ids=["none", "a stranger's"])
def test_a_door_that_stays_closed(locked, key):
    found = examine(locked.url, exit_code=1, FLASHCARDS_KEY=key)
    assert [what for what, finding in found.items() if finding["ok"] is False] == ["key"]
    assert "FLASHCARDS_KEY" in found["key"]["advice"]
    assert key not in json.dumps(found) or not key


def test_a_door_that_opens(locked, admin_key):
    found = examine(locked.url, exit_code=0, FLASHCARDS_KEY=admin_key)
    assert found["key"]["found"] == "it is good"
    assert found["disk"]["ok"]


def test_where_nobody_listens_it_looks_at_this_machine(tmp_path):
    port = free_port()
    home = tmp_path / "home"
    found = examine(f"http://127.0.0.1:{port}", exit_code=1, FLASHCARDS_HOME=str(home), FLASHCARDS_PORT=str(port))
    assert [what for what, finding in found.items() if not finding["ok"]] == ["service"]
    assert "flashcards serve" in found["service"]["advice"]
    assert found["home"]["found"] == f"{home} can be made"
    assert found["port"]["found"] == f"127.0.0.1:{port} is free"
    assert not home.exists()


def test_somebody_else_on_the_port(tmp_path):
    with stranger(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi") as port:
        environment = {"FLASHCARDS_HOME": str(tmp_path), "FLASHCARDS_PORT": str(port)}
        found = examine(f"http://127.0.0.1:{port}", exit_code=1, **environment)
        assert "no Flashcards service" in found["service"]["found"]
        assert "FLASHCARDS_PORT" in found["port"]["advice"]
