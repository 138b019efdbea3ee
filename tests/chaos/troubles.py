"""Everything that is done to the service. What a trouble takes away it gives back; to recover is the service's part."""

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import psutil
from sqlalchemy import func, select, update
from stack import ServersStack, Stack

from ledger import lifecycle
from ledger.db import Database
from ledger.tables import Attempt, Event, Idempotency, Job, Worker
from tests.chaos.disk import Disk

BOTH = ("embedded", "servers")
HOUR = 3600
GOES_SECONDS = 15


class Violation(Exception):
    """Something that must never happen did."""


@dataclass
class Scene:
    stack: Stack
    disk: Disk | None
    chance: Random
    over_at: float = field(default_factory=time.monotonic)  # from then on the service could be well again


@dataclass(frozen=True)
class Trouble:
    name: str
    make: Callable[[Scene], str]
    stacks: tuple[str, ...]
    kill: bool
    weight: int
    needs_disk: bool


TROUBLES: list[Trouble] = []


def trouble(
    name: str, *, stacks: tuple[str, ...] = BOTH, kill: bool = False, weight: int = 1, needs_disk: bool = False
) -> Callable[[Callable[[Scene], str]], Callable[[Scene], str]]:
    def add(make: Callable[[Scene], str]) -> Callable[[Scene], str]:
        TROUBLES.append(Trouble(name, make, stacks, kill, weight, needs_disk))
        return make

    return add


def kinds(stack: str, *, own: bool = False) -> list[Trouble]:
    """All that this stack can have, or those that no other can."""
    return [each for each in TROUBLES if stack in each.stacks and not (own and each.stacks == BOTH)]


def plan(stack: str, seed: int, kills: int, *, disk: bool, own: bool = False) -> list[Trouble]:
    """Every kind as often as there is room for, in an order that the seed decides."""
    chance = Random(f"{seed}:{stack}:plan")
    there = [each for each in kinds(stack, own=own) if disk or not each.needs_disk]
    killing, other = [each for each in there if each.kill], [each for each in there if not each.kill]
    chosen = [*killing, *chance.choices(killing, [each.weight for each in killing], k=kills)][:kills]
    rounds = -(-kills // (4 * len(other)))
    chosen += other * rounds
    chance.shuffle(chosen)
    return chosen


# kill -9


@trouble("kill a runner or its nursery", kill=True, weight=8)
def kill_runner(scene: Scene) -> str:
    runners = scene.stack.processes("worker.runner")
    if not runners:
        return "there was none"
    working = scene.stack.working_runner()
    victim = working if working and scene.chance.random() < 0.8 else scene.chance.choice(runners)
    return _kill([victim])


@trouble("kill a worker, and the reaper in it", kill=True, weight=6)
def kill_worker(scene: Scene) -> str:
    return _kill(_some(scene, "worker"))


@trouble("kill an API", kill=True, weight=3)
def kill_api(scene: Scene) -> str:
    return _kill(_some(scene, "service.api"))


@trouble("kill everything", kill=True, weight=1)
def kill_everything(scene: Scene) -> str:
    scene.stack.kill_everything()
    return ""


@trouble("kill serve alone", kill=True, stacks=("embedded",), weight=1)
def kill_serve(scene: Scene) -> str:
    """Its parts must not outlive it: two workers over one embedded broker would be one too many."""
    parts = scene.stack.processes("worker") + scene.stack.processes("service.api")
    said = _kill(scene.stack.processes("service"))
    _must_go(parts, "outlived serve")
    return said


@trouble("kill Redis", kill=True, stacks=("servers",), weight=2)
def kill_redis(scene: Scene) -> str:
    stack = _servers(scene)
    return _away(scene, stack.redis.kill, stack.redis.start)


@trouble("kill PostgreSQL", kill=True, stacks=("servers",), weight=2)
def kill_postgres(scene: Scene) -> str:
    stack = _servers(scene)
    return _away(scene, stack.postgres.kill, stack.postgres.start)


@trouble("power cut: kill everything, Redis and PostgreSQL", kill=True, stacks=("servers",), weight=1)
def cut_power(scene: Scene) -> str:
    stack = _servers(scene)
    stack.keeper.rest()
    stack.postgres.kill()
    stack.redis.kill()
    stack.kill_all_processes()
    for server in stack.servers:
        server.start()
    stack.keeper.start()
    return ""


# In good order, and not


@trouble("stop and start Redis", stacks=("servers",))
def restart_redis(scene: Scene) -> str:
    stack = _servers(scene)
    return _away(scene, stack.redis.stop, stack.redis.start)


@trouble("stop and start PostgreSQL", stacks=("servers",))
def restart_postgres(scene: Scene) -> str:
    stack = _servers(scene)
    return _away(scene, stack.postgres.stop, stack.postgres.start)


@trouble("empty the broker")
def empty_broker(scene: Scene) -> str:
    scene.stack.empty_broker()
    return ""


@trouble("drain a worker (TERM)")
def drain_worker(scene: Scene) -> str:
    """What it was doing goes back to the queue at once, and costs no try."""
    workers = _some(scene, "worker")
    if not workers:
        return "there was none"
    held = _held_by(scene.stack.ledger, workers[0].pid)
    workers[0].send_signal(signal.SIGTERM)
    _must_go(workers, "did not leave on TERM")
    _must_not_be_lost(scene.stack.ledger, held)
    return f"pid {workers[0].pid}, {len(held)} running"


@trouble("drain all, and start again (TERM)")
def drain_all(scene: Scene) -> str:
    codes = scene.stack.stop()
    bad = [code for code in codes if code not in (0, -signal.SIGTERM)]
    if bad:
        raise Violation(f"exit codes on TERM: {codes}")
    scene.stack.keeper.start()
    return ""


@trouble("steal a lease while the old runner lives")
def steal_lease(scene: Scene) -> str:
    db = scene.stack.ledger
    found = _under_way(db)
    if found is None:
        return "nothing was under way"
    job_id, attempt, pid = found
    runner = scene.stack.working_runner(pid)
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id, Job.attempt == attempt).values(lease_until=1.0))
        if not lifecycle.lose(session, job_id, attempt, "its lease was stolen"):
            session.rollback()
            return "it ended at that moment"
    if runner is not None:
        _must_go([runner], f"went on with attempt {attempt} of {job_id}, which is no longer its own")
    return f"attempt {attempt} of {job_id}"


@trouble("freeze a worker (STOP), and let it go on")
def freeze_worker(scene: Scene) -> str:
    """Sometimes past its lease: it wakes up to a job that is no longer its own, with a runner that never slept."""
    return _freeze(scene, _some(scene, "worker"))


@trouble("freeze PostgreSQL (STOP), and let it go on", stacks=("servers",))
def freeze_postgres(scene: Scene) -> str:
    process = _servers(scene).postgres.process
    assert process is not None
    top = psutil.Process(process.pid)
    return _freeze(scene, [top, *top.children(recursive=True)])


@trouble("fill the disk", needs_disk=True)
def fill_disk(scene: Scene) -> str:
    assert scene.disk is not None
    room = scene.disk.fill()
    try:
        time.sleep(scene.chance.uniform(0.5, 3))
    finally:
        scene.disk.free()
        scene.over_at = time.monotonic()
    return f"{room / 1e6:.0f} MB of room were taken"


@trouble("the clock jumps an hour ahead")
def clock_ahead(scene: Scene) -> str:
    return _shift(scene, -HOUR)


@trouble("the clock jumps an hour back")
def clock_back(scene: Scene) -> str:
    return _shift(scene, HOUR)


def _shift(scene: Scene, seconds: float) -> str:
    """The machine's clock is not ours to set. What was written before a jump looks so much older or newer after it."""
    columns = (Job.lease_until, Job.rung_at, Worker.seen_at, Idempotency.locked_until)
    with scene.stack.ledger.write() as session:
        for column in columns:
            session.execute(update(column.class_).values({column.key: column + seconds}))
    return ""


def _some(scene: Scene, module: str) -> list[psutil.Process]:
    found = scene.stack.processes(module)
    return [scene.chance.choice(found)] if found else []


def _kill(processes: list[psutil.Process]) -> str:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return ", ".join(f"pid {process.pid}" for process in processes) or "there was none"


def _servers(scene: Scene) -> ServersStack:
    assert isinstance(scene.stack, ServersStack)
    return scene.stack


def _away(scene: Scene, down: Callable[[], None], up: Callable[[], None]) -> str:
    """Sometimes for less than a lease, sometimes for more."""
    seconds = scene.chance.choice([0.0, 0.5, 1.5, 4.0])
    down()
    time.sleep(seconds)
    up()
    scene.over_at = time.monotonic()
    return f"away for {seconds:g} s"


def _freeze(scene: Scene, processes: list[psutil.Process]) -> str:
    seconds = scene.chance.choice([1.0, 4.5])
    _send(processes, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        _send(processes, signal.SIGCONT)
    scene.over_at = time.monotonic()
    return f"for {seconds:g} s"


def _send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _must_go(processes: list[psutil.Process], otherwise: str) -> None:
    left = psutil.wait_procs(processes, timeout=GOES_SECONDS)[1]
    if left:
        raise Violation(f"{[process.pid for process in left]} {otherwise}")


def _held_by(db: Database, pid: int) -> list[tuple[str, int]]:
    statement = select(Job.id, Job.attempt).join(Worker, Worker.id == Job.worker_id)
    with db.read() as session:
        rows = session.execute(statement.where(Job.state == "running", Worker.pid == pid)).all()
        return [(row[0], row[1]) for row in rows]


def _must_not_be_lost(db: Database, held: list[tuple[str, int]]) -> None:
    with db.read() as session:
        for job_id, number in held:
            attempt = session.get_one(Attempt, (job_id, number))
            if attempt.outcome not in ("released", "succeeded", "cancelled"):
                raise Violation(f"attempt {number} of {job_id} was {attempt.outcome} by a worker that was asked to go")


def _under_way(db: Database) -> tuple[str, int, int] | None:
    """A job whose runner has said something: its id, its attempt, and the process of its worker."""
    spoke = select(func.count()).where(
        Event.job_id == Job.id, Event.attempt == Job.attempt, Event.kind.in_(["progress", "resume_point"])
    )
    statement = select(Job.id, Job.attempt, Worker.pid).join(Worker, Worker.id == Job.worker_id)
    with db.read() as session:
        row = session.execute(statement.where(Job.state == "running", spoke.scalar_subquery() > 0)).first()
        return None if row is None else (row[0], row[1], row[2])
