"""One run: a stack, a seed, a plan of troubles, a client that posts meanwhile, a look at the record after each."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import psutil
from soundness import assert_ledger_sound, assert_work_tidy
from sqlalchemy import Select, func, select
from sqlalchemy.exc import DBAPIError
from stack import STACKS

from ledger.steps import TERMINAL
from ledger.store import Store
from ledger.tables import Attempt, Job, Worker
from tests.chaos.disk import Disk
from tests.chaos.judge import Judge
from tests.chaos.state import Met, State
from tests.chaos.stream import Stream
from tests.chaos.troubles import Scene, Trouble, Violation, plan

RECOVER_SECONDS = 60
UNLUCKY_STRIKES = 12  # of 20
STALL_SECONDS = 90
HURRY = 0.3  # so often the next trouble does not wait until the last one is over
NEEDS_DISK = "fill the disk"


class Run:
    def __init__(self, folder: Path, stack: str, seed: int, kills: int, pause: float, *, own: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "state.json"
        self.state = State.load(self.path) if self.path.exists() else State(stack, seed, kills)
        self.state.kills = kills
        self.folder = folder
        self.pause, self.own = pause, own
        self.disk: Disk | None = None
        self._moved_at = time.monotonic()
        self._seen: Any = None

    def go(self, show: Callable[[str], None]) -> State:
        """To the end, or until interrupted; either way everything is written down and nothing runs on."""
        state, began, before = self.state, time.monotonic(), self.state.seconds
        self._mount()
        self.stack = STACKS[state.stack](self.folder)
        self.stream = Stream(self.stack, state, self._complain)
        try:
            show("starting")
            self.stack.start()
            show("running every kind of job once in peace")
            self.stream.prepare()
            state.save(self.path)
            self._make_troubles(show)
            show("waiting for the last jobs")
            self._see_everything_through()
            state.finished = True
        finally:
            self.stack.close()
            self.stream.close()
            state.seconds = before + time.monotonic() - began
            state.save(self.path)
            if self.disk is not None:
                self.disk.unmount()
        return state

    def _mount(self) -> None:
        disk = Disk(self.folder / "disk.img", self.folder / "home")
        why_not = disk.mount()
        if why_not is None:
            self.disk = disk
        else:
            self.state.skipped[NEEDS_DISK] = why_not

    def _complain(self, what: str) -> None:
        self.state.violations.append(what)

    # The troubles

    def _make_troubles(self, show: Callable[[str], None]) -> None:
        state = self.state
        troubles = plan(state.stack, state.seed, state.kills, disk=self.disk is not None, own=self.own)
        self.stream.start()
        try:
            for number in range(state.done, len(troubles)):
                show(troubles[number].name)
                self._make(troubles[number], Random(f"{state.seed}:{state.stack}:{number}"))
                state.done = number + 1
                state.save(self.path)
        finally:
            self.stream.stop()

    def _make(self, trouble: Trouble, chance: Random) -> None:
        time.sleep(chance.uniform(0.2, max(0.2, self.pause)))
        hurry = chance.random() < HURRY
        note, recovered = "", None
        try:
            self._let_the_unlucky_get_on()
            scene = Scene(self.stack, self.disk, chance)
            note = trouble.make(scene)
            if not hurry:
                self._wait_until_well()
                recovered = time.monotonic() - scene.over_at
        except (Violation, AssertionError, TimeoutError, DBAPIError) as wrong:
            self._complain(f"{trouble.name}: {wrong}")
        self.state.troubles.append(Met(trouble.name, trouble.kill, note, recovered))
        self._check(f"after trouble {len(self.state.troubles)}, {trouble.name}", chance)

    def _let_the_unlucky_get_on(self) -> None:
        """On a slow machine kills can come faster than resume points, and a job that never gets on is given up."""
        unlucky = select(func.count()).where(Job.state.not_in(TERMINAL), Job.strikes >= UNLUCKY_STRIKES)
        while self._count(unlucky):
            self._look_for_movement()
            time.sleep(0.2)

    def _count(self, statement: Select[int]) -> int:
        with suppress(DBAPIError), self.stack.ledger.read() as session:
            return session.scalar(statement) or 0
        return 1

    def _wait_until_well(self) -> None:
        deadline = time.monotonic() + RECOVER_SECONDS
        while time.monotonic() < deadline:
            self._look_for_movement()
            with suppress(DBAPIError):
                if self.stack.is_ready() and not self._held_by_the_dead():
                    return
            time.sleep(0.1)
        raise Violation(f"not well again after {RECOVER_SECONDS} s")

    def _held_by_the_dead(self) -> bool:
        held = select(Worker.pid).select_from(Job).outerjoin(Worker, Worker.id == Job.worker_id)
        with self.stack.ledger.read() as session:
            pids = session.scalars(held.where(Job.state == "running")).all()
        return any(pid is None or not psutil.pid_exists(pid) for pid in pids)

    def _look_for_movement(self) -> None:
        """Work that waits, and nothing that happens to it, is a stall."""
        with suppress(DBAPIError), self.stack.ledger.read() as session:
            seen = (session.scalar(select(func.sum(Job.seq))), session.scalar(select(func.count(Attempt.number))))
            waiting = session.scalar(select(func.count()).where(Job.state.not_in(TERMINAL)))
            now = time.monotonic()
            if seen != self._seen or not waiting:
                self._seen, self._moved_at = seen, now
            silence = now - self._moved_at
            self.state.longest_silence = max(self.state.longest_silence, silence)
            if silence > STALL_SECONDS:
                raise Violation(f"{waiting} jobs wait, and nothing has happened for {silence:.0f} s")

    def _check(self, when: str, chance: Random, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        store = Store(self.stack.read_settings().store)
        while True:
            try:
                assert_ledger_sound(self.stack.ledger, store, chance)
                self.state.checks += 1
                return
            except AssertionError as wrong:
                self._complain(f"{when}: {wrong}")
                return
            except DBAPIError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    # The end

    def _see_everything_through(self) -> None:
        try:
            self._wait_until_well()
            while not self.stream.is_over():
                self._look_for_movement()
                self.stream.step(post=False)
                time.sleep(0.2)
        except (Violation, TimeoutError) as violation:
            self._complain(str(violation))
        self._check("at the end", Random(0))
        self.state.summary = Judge(self.state, self._complain).judge(self.stack.ledger)
        self._leave()

    def _leave(self) -> None:
        """Everything goes on TERM, and leaves nothing behind."""
        try:
            self.stack.wait_until_ready()
            assert_work_tidy(self.stack.ledger, self.stack.home / "work")
            self.stack.stop()
            left = list((self.stack.home / "work").iterdir())
            assert not left, f"attempt folders after the last worker has left: {left}"
        except (AssertionError, TimeoutError) as wrong:
            self._complain(f"at the end: {wrong}")
