import json
import os
import subprocess
import sys

import pytest
from service_process import free_port

from service.doctor import look


@pytest.fixture
def found(monkeypatch, tmp_path):
    """What it finds with these settings."""

    def found(**settings: object) -> dict[str, tuple[bool | None, str]]:
        for name, value in {"home": tmp_path / "home", "port": free_port(), **settings}.items():
            monkeypatch.setenv(f"FLASHCARDS_{name.upper()}", str(value))
        return {finding.what: (finding.ok, finding.found) for finding in look()}

    return found


def test_a_machine_that_is_fit(found):
    assert {what: ok for what, (ok, _) in found().items()} == dict.fromkeys(("settings", "home", "disk", "port"), True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"lease_seconds": -1}, "FLASHCARDS_LEASE_SECONDS"), ({"host": "0.0.0.0"}, "without keys")],
)
def test_settings_that_make_no_sense(found, settings, words):
    (what, (ok, told)), *others = found(**settings).items()
    assert (what, ok, others) == ("settings", False, [])
    assert words in told


def test_a_home_that_is_a_file(found, tmp_path):
    (tmp_path / "file").touch()
    assert found(home=tmp_path / "file" / "home")["home"][0] is False


def test_a_service_that_runs_here_but_listens_elsewhere(found, service):
    ok, told = found(home=service.home)["lock"]
    assert not ok
    assert str(service.home) in told


def test_a_port_that_is_taken(found, service):
    assert found(port=service.port)["port"][0] is False


@pytest.mark.slow
def test_servers_that_are_away_leave_the_findings_readable(tmp_path):
    nobody = f"127.0.0.1:{free_port()}"
    settings = {
        "FLASHCARDS_HOME": str(tmp_path),
        "FLASHCARDS_DATABASE_URL": f"postgresql://flashcards:hunter2@{nobody}/flashcards",
        "FLASHCARDS_BROKER_URL": f"redis://:hunter2@{nobody}/0",
        "FLASHCARDS_STORE_URL": f"file://{tmp_path}/store",
        "FLASHCARDS_MLFLOW_URL": f"http://me:hunter2@{nobody}",
    }
    command = [sys.executable, "-m", "service.doctor"]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=120)
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert [found[part]["ok"] for part in ("database", "broker", "store", "mlflow")] == [False, False, True, False]
    assert "FLASHCARDS_DATABASE_URL" in found["database"]["advice"]
    assert "hunter2" not in done.stdout


def test_it_is_quick_where_there_is_no_server_to_ask(tmp_path):
    """Loading what the service is made of takes seconds, and on a busy machine many."""
    script = (
        "import sys; from service.doctor import look; found = list(look()); assert len(found) == 4, found;"
        "heavy = {'fastapi', 'sqlalchemy', 'celery', 'kombu', 'torch'} & set(sys.modules); assert not heavy, heavy"
    )
    environment = {**os.environ, "FLASHCARDS_HOME": str(tmp_path / "home"), "FLASHCARDS_PORT": str(free_port())}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
