import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from servers import new_database
from sqlalchemy import update

from ledger import workers
from ledger.clock import now
from ledger.db import Database
from ledger.migrate import migrate
from ledger.tables import Worker
from ledger.workers import is_alive_here


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request, tmp_path):
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'flashcards.db'}"
    else:
        url = new_database(request.getfixturevalue("postgres_url"), uuid4().hex)
    with closing(Database(url)) as database:
        migrate(database)
        yield database


@pytest.fixture
def worker_id(db) -> str:
    return workers.register(db, "cpu")


def change(db: Database, worker_id: str, **values: object) -> None:
    with db.write() as session:
        session.execute(update(Worker).where(Worker.id == worker_id).values(**values))


def ask(home: Path, url: str = "") -> subprocess.CompletedProcess:
    environment = {"PATH": os.environ["PATH"], "FLASHCARDS_HOME": str(home), "FLASHCARDS_DATABASE_URL": url}
    return subprocess.run([sys.executable, "-m", "worker.check"], env=environment, capture_output=True, text=True)


def test_a_worker_that_beats_is_alive(db, worker_id):
    assert is_alive_here(db)


def test_a_silent_one_is_not(db, worker_id):
    change(db, worker_id, seen_at=now() - workers.ALIVE_SECONDS - 1)
    assert not is_alive_here(db)


def test_one_of_another_machine_does_not_count(db, worker_id):
    change(db, worker_id, host="elsewhere")
    assert not is_alive_here(db)


def test_one_whose_process_is_gone_does_not_count(db, worker_id):
    change(db, worker_id, pid=next(pid for pid in range(2**22 - 1, 0, -1) if not psutil.pid_exists(pid)))
    assert not is_alive_here(db)


def test_the_command_says_it_with_its_exit_code(db, worker_id, tmp_path):
    assert ask(tmp_path, db.url).returncode == 0
    workers.leave(db, worker_id)
    left = ask(tmp_path, db.url)
    assert (left.returncode, left.stdout) == (1, "")
    assert "no worker of this machine" in left.stderr


def test_no_database_is_said_in_words(tmp_path):
    answer = ask(tmp_path / "nowhere")
    assert answer.returncode == 1
    assert answer.stderr.startswith("flashcards: the database does not answer: ")
    assert "Traceback" not in answer.stderr
