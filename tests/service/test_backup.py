"""`flashcards backup` and `flashcards restore` as an operator types them, beside a service that runs."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from making import make_key, push_model
from service_process import free_port

COMMAND = Path(sys.executable).with_name("flashcards")


def run(*words: object, code: int = 0, **settings: object) -> subprocess.CompletedProcess:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FLASHCARDS_")}
    ours = {f"FLASHCARDS_{name.upper()}": str(value) for name, value in settings.items()}
    done = subprocess.run(
        [COMMAND, *map(str, words)], env={**plain, **ours}, capture_output=True, text=True, timeout=150
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def backup(locked, admin, tmp_path_factory):
    """Of a service with keys, in two ways."""
    push_model(admin)
    make_key(admin, tenant="backed-up")
    folder = tmp_path_factory.mktemp("backup") / "nightly"
    told = run("backup", folder, home=locked.home).stdout
    assert told.startswith(f"{folder}: ")
    assert "files" in told
    return folder


def test_it_is_whole_and_for_its_owner_alone(backup, locked, tmp_path):
    assert "whole" in run("restore", backup, "--check", home=tmp_path / "nowhere").stdout
    assert backup.stat().st_mode & 0o077 == 0
    told = json.loads(run("backup", tmp_path / "backup.tar", "--json", home=locked.home).stdout)
    assert told["rows"]["model"] >= 1
    assert (tmp_path / "backup.tar").stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.tar"]


def test_no_secret_is_in_it(backup, locked, admin_key):
    (record,) = backup.glob("record-*")
    told = (backup / "backup.json").read_bytes() + gzip.decompress(record.read_bytes())
    assert b"backed-up" in told
    for secret in ((locked.home / "key-secret").read_text().strip(), admin_key):
        assert secret.encode() not in told


@pytest.mark.slow
def test_restored_it_says_whether_its_keys_will_open(backup, locked, tmp_path):
    told = json.loads(run("restore", backup, "--json", home=tmp_path / "new").stdout)
    assert "FLASHCARDS_KEY_SECRET" in told["warnings"][0]
    secret = (locked.home / "key-secret").read_text().strip()
    told = json.loads(run("restore", backup, "--json", home=tmp_path / "other", key_secret=secret).stdout)
    assert told["warnings"] == []


@pytest.mark.slow
def test_a_home_in_use_is_refused(backup, locked):
    done = run("restore", backup, home=locked.home, code=1)
    assert "a `flashcards serve` uses" in done.stderr


@pytest.mark.slow
def test_a_second_time_is_refused(backup, tmp_path):
    run("restore", backup, home=tmp_path / "new")
    done = run("restore", backup, "--json", home=tmp_path / "new", code=1)
    assert "the database is not empty" in json.loads(done.stderr)["detail"]


def test_nothing_there_to_back_up(tmp_path):
    done = run("backup", tmp_path / "to", home=tmp_path / "empty", code=1)
    assert f"there is nothing to back up in {tmp_path / 'empty'}" in done.stderr
    assert not (tmp_path / "empty").exists()


@pytest.mark.slow
def test_what_cannot_be_reached_or_written_is_said(locked, backup, tmp_path):
    nowhere = f"postgresql://nobody:hush@127.0.0.1:{free_port()}/nothing"
    done = run("restore", backup, home=tmp_path, database_url=nowhere, code=5)
    assert "the database does not answer" in done.stderr
    assert "hush" not in done.stderr
    (tmp_path / "file").write_text("in the way")
    done = run("backup", tmp_path / "file" / "backup", home=locked.home, code=1)
    assert "Not a directory" in done.stderr
    done = run("restore", tmp_path / "none", home=tmp_path, code=1)
    assert f"there is no {tmp_path / 'none'}" in done.stderr
