"""Progress for people: a bar on a terminal, a line a trouble elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tests.chaos.state import State


class Screen:
    def __init__(self) -> None:
        self._console = Console()
        self._bar = Progress(
            TextColumn("{task.fields[run]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("kills, {task.fields[jobs]} jobs, {task.fields[violations]} violations"),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=self._console,
        )
        self._task: TaskID | None = None
        self._state: State | None = None

    def watch(self, state: State) -> None:
        self._state = state
        run = f"{state.stack}, seed {state.seed}"
        self._task = self._bar.add_task("", total=state.kills, run=run, jobs=0, violations=0)
        self.show("")

    def show(self, doing: str) -> None:
        assert self._state is not None
        assert self._task is not None
        state = self._state
        told = {"jobs": len(state.jobs), "violations": len(state.violations)}
        self._bar.update(self._task, description=doing, completed=state.killed, **told)
        if not self._console.is_terminal and doing:
            figures = f"{state.killed}/{state.kills} kills, {told['jobs']} jobs, {told['violations']} violations"
            print(f"{time.strftime('%X')} {state.stack}, seed {state.seed}: {figures}: {doing}", flush=True)

    def close(self) -> None:
        self._bar.stop()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
