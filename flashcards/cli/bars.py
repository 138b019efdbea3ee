"""Progress bars, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskProgressColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

from flashcards.contract.resources import Event, Progress
from flashcards.progress import in_words

if TYPE_CHECKING:
    from flashcards.client.files import Progress as Sent


def errors_console() -> Console:
    return Console(stderr=True, highlight=False, markup=False)


@contextmanager
def transfer_bar(name: str, quiet: bool) -> "Iterator[Sent | None]":
    if quiet:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bars(*columns, console=errors_console(), transient=True) as bars:
        task = bars.add_task(name, total=None)
        yield lambda sent, total: bars.update(task, completed=sent, total=total)


def job_bars(quiet: bool = False) -> Bars:
    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        console=errors_console(),
        disable=quiet,
    )


class JobBar:
    """One job as a bar: how far, how fast, how long still."""

    def __init__(self, bars: Bars, name: str) -> None:
        self._bars = bars
        self._name = name
        self._task = bars.add_task(name, total=1.0, words="")

    def show(self, event: Event) -> None:
        if event.kind == "progress":
            progress = Progress.model_validate(event.data, extra="ignore")
            self._bars.update(self._task, completed=progress.fraction, words=in_words(progress))
        elif event.kind == "state" and event.data.get("state") != "succeeded":
            self._bars.update(self._task, words=event.data.get("reason") or event.data.get("state", ""))
        elif event.kind in ("note", "warning"):
            self._bars.console.print(f"{self._name}: {event.data['text']}")
