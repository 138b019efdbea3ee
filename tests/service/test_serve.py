import subprocess
import sys

import pytest


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
