import subprocess
import sys
import time

import pytest
from service_process import free_port

from ledger.db import Database
from service import serve
from service.serve import Part, look_after


def start(service, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "service"],
        env={**service.environment, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_home_that_is_in_use_is_not_shared(service):
    ended = start(service)
    assert ended.returncode == 1
    assert "another `flashcards serve` is using" in ended.stderr


def test_a_port_that_is_taken_is_said_at_once(service, tmp_path):
    ended = start(service, FLASHCARDS_HOME=str(tmp_path))
    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{service.port}" in ended.stderr


@pytest.mark.parametrize(("name", "value"), [("PORT", "many"), ("LEASE_SECONDS", "-1"), ("QUEUE", "tpu")])
def test_a_setting_that_makes_no_sense_is_named(service, name, value):
    ended = start(service, **{f"FLASHCARDS_{name}": value})
    assert ended.returncode == 1
    assert f"FLASHCARDS_{name}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_greeting_has_an_address_and_a_line_that_works(service):
    text = service.log.read_text()
    assert f"Flashcards is ready at {service.url}" in text
    command = text.split("Try:  ")[1].splitlines()[0].split()
    assert command[0] == "curl"
    assert subprocess.run(["curl", "-sf", *command[1:]], capture_output=True, timeout=20).returncode == 0


def test_a_record_that_cannot_be_opened_is_said_in_words(service, tmp_path):
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    ended = start(
        service, FLASHCARDS_HOME=str(tmp_path), FLASHCARDS_PORT=str(free_port()), FLASHCARDS_DATABASE_URL=nowhere
    )
    assert ended.returncode == 1
    assert "flashcards: the record cannot be opened" in ended.stderr
    assert "Traceback" not in ended.stderr


class TestPart:
    def dead(self, lived: float) -> Part:
        part = Part("worker", "worker")
        part.process = subprocess.Popen(["true"])
        part.process.wait()
        part.started_at = time.monotonic() - lived
        return part

    def test_each_early_death_doubles_the_pause_and_a_longer_life_forgets_it(self):
        part = self.dead(lived=0)
        assert [part.plan_restart() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
        part.started_at = time.monotonic() - 6
        assert part.plan_restart() == 0.5

    def test_a_worker_that_dies_while_the_record_is_away_does_not_take_the_service_with_it(self, capsys):
        part = self.dead(lived=60)
        db = Database(f"postgresql://nobody@127.0.0.1:{free_port()}/nothing")
        look_after(part, db)
        assert part.process is None
        assert "the record is away" in capsys.readouterr().out
        db.close()


def test_a_part_that_does_not_go_is_killed_and_that_is_said(monkeypatch, capsys):
    monkeypatch.setattr(serve, "STOP_SECONDS", 0.5)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    parts = [Part("deaf", "none"), Part("good", "none")]
    for part, code in zip(parts, (deaf, "import time; print(flush=True); time.sleep(60)"), strict=True):
        part.process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        part.process.stdout.readline()  # it is up
    serve.stop(parts)
    assert [part.process.returncode for part in parts] == [-9, -15]
    assert capsys.readouterr().out == " serve | deaf did not go within 0.5 s, and was killed\n"
    for part in parts:
        part.process.stdout.close()
