"""Signs of life."""

import os
import socket
from pathlib import Path

from sqlalchemy import delete, func, select, update

from ledger.clock import now
from ledger.db import Database
from ledger.ids import new_id
from ledger.tables import Job, Worker

ALIVE_SECONDS = 60
FORGET_SECONDS = 86400


def register(db: Database, queue: str) -> str:
    worker_id = new_id("worker")
    with db.write() as session:
        session.execute(delete(Worker).where(Worker.seen_at < now() - FORGET_SECONDS))
        session.add(Worker(id=worker_id, queue=queue, host=socket.gethostname()[:200], pid=os.getpid()))
    return worker_id


def beat(db: Database, worker_id: str) -> None:
    with db.write() as session:
        session.execute(update(Worker).where(Worker.id == worker_id).values(seen_at=now()))


def leave(db: Database, worker_id: str) -> None:
    with db.write() as session:
        session.execute(delete(Worker).where(Worker.id == worker_id))


def alive(db: Database) -> dict[str, int]:
    """How many live workers each queue has."""
    with db.read() as session:
        recent = func.abs(now() - Worker.seen_at) < ALIVE_SECONDS
        rows = session.execute(select(Worker.queue, func.count()).where(recent).group_by(Worker.queue)).all()
        return {row[0]: row[1] for row in rows}


def idle(db: Database) -> dict[str, int]:
    """How many of them have nothing to do."""
    with db.read() as session:
        running = select(Job.queue, func.count()).where(Job.state == "running").group_by(Job.queue)
        busy = {row[0]: row[1] for row in session.execute(running)}
    return {queue: max(0, count - busy.get(queue, 0)) for queue, count in alive(db).items()}


def dead_here(db: Database) -> list[str]:
    """Workers of this machine whose process is gone."""
    with db.read() as session:
        rows = session.execute(select(Worker.id, Worker.pid).where(Worker.host == socket.gethostname()[:200])).all()
    return [worker_id for worker_id, pid in rows if not Path(f"/proc/{pid}").exists()]


def is_alive_here(db: Database) -> bool:
    """A row alone is not enough: for a minute it outlives a worker that was killed."""
    here = (Worker.host == socket.gethostname()[:200], Worker.seen_at > now() - ALIVE_SECONDS)
    with db.read() as session:
        return any(Path(f"/proc/{pid}").exists() for pid in session.scalars(select(Worker.pid).where(*here)))


def living(db: Database, myself: str) -> set[str]:
    """All but those surely gone: of this machine those without a process, of others those that left or fell silent.

    A container's first process always has the same number: whoever had ours is gone.
    """
    here = socket.gethostname()[:200]
    with db.read() as session:
        rows = session.execute(select(Worker.id, Worker.host, Worker.pid, now() - Worker.seen_at)).all()
    alive = {id for id, host, _, silent in rows if host != here and silent < FORGET_SECONDS}
    alive |= {id for id, host, pid, _ in rows if host == here and pid != os.getpid() and Path(f"/proc/{pid}").exists()}
    return alive | {myself}


def by_pid(db: Database, pid: int) -> str | None:
    """Which worker of this machine ran as that process."""
    with db.read() as session:
        here = (Worker.pid == pid, Worker.host == socket.gethostname()[:200])
        return session.scalar(select(Worker.id).where(*here).order_by(Worker.started_at.desc()).limit(1))
