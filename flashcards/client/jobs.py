# Made from aio/jobs.py by `make client`: change it there.
import math
import time
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

from flashcards.client.bound import Bound
from flashcards.client.flashcards import BoundFlashcards, FlashcardSets
from flashcards.client.follow import check, follow
from flashcards.client.http import Http
from flashcards.client.models import Models
from flashcards.client.patience import within
from flashcards.client.resource import AT_ONCE, at, each
from flashcards.client.tensors import Cards, Framework
from flashcards.contract.reports import Report
from flashcards.contract.resources import TERMINAL_STATES, Event, Job, JobState, JobSummary, Metrics, Model, Page
from flashcards.contract.specs import JobKind
from flashcards.errors import JobFailed, NothingMade
from flashcards.progress import show_job
from flashcards.torch_data import Transform

PATH = "/v1/jobs"
WAIT_SECONDS = 30.0


class BoundJob(Job, Bound):
    """A job as it was when it was asked for, that can be waited for and asked for what it made."""

    def wait(
        self, timeout: float | None = None, progress: bool = False, on_event: Callable[[Event], object] | None = None
    ) -> "BoundJob":
        """The job once it has succeeded, with a bar on the way if wanted. Raises JobFailed where it ends otherwise."""
        ended = Jobs(self._http).wait(self.id, timeout, show_job(self.kind) if progress else on_event)
        if ended.state != "succeeded":
            raise JobFailed(ended)
        return ended

    def refresh(self) -> "BoundJob":
        """The job as it is now."""
        return Jobs(self._http).get(self.id)

    def cancel(self) -> "BoundJob":
        return Jobs(self._http).cancel(self.id)

    def retry(self) -> "BoundJob":
        return Jobs(self._http).retry(self.id)

    def events(self, after: int = 0) -> Iterator[Event]:
        return Jobs(self._http).events(self.id, after)

    def report(self) -> Report:
        return Jobs(self._http).report(self.id)

    def artifact(self, name: str, to: str | PathLike[str]) -> Path:
        return Jobs(self._http).artifact(self.id, name, to)

    def model(self) -> Model:
        """The model that it made."""
        return Models(self._http).get(self._made("model"))

    def flashcards(self) -> BoundFlashcards:
        """The set of cards that it made."""
        return FlashcardSets(self._http).get(self._made("flashcards"))

    @overload
    def cards(self, framework: Literal["numpy"] = "numpy") -> Cards: ...

    @overload
    def cards(self, framework: Literal["torch"]) -> Any: ...

    def cards(self, framework: Framework = "numpy") -> Any:
        """All cards that it made: a numpy array N x H x W x C, or a torch tensor N x C x H x W."""
        found = self.flashcards()
        return found.cards(framework)

    def dataset(self, folder: str | PathLike[str] | None = None, transform: Transform | None = None) -> Any:
        """All cards that it made as a torch `Dataset`; with `folder` they lie there, and not in memory."""
        found = self.flashcards()
        return found.dataset(folder, transform)

    def _made(self, what: str) -> str:
        id: str | None = getattr(self.result, what, None)
        if id is None:
            raise NothingMade(f"{self.id} is {self.state} and has made no {what}")
        return id


class Jobs:
    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        state: JobState | None = None,
        kind: JobKind | None = None,
        label: Mapping[str, str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
        parent: str | None = None,
    ) -> Page[JobSummary]:
        """One page, newest first; its `next_cursor` asks for the next. `parent`: its children; `none`: no children."""
        labels = [f"{key}={value}" for key, value in (label or {}).items()]
        params = {"state": state, "kind": kind, "label": labels, "parent": parent, "limit": limit, "cursor": cursor}
        return self._http.get(Page[JobSummary], PATH, params)

    def each(
        self,
        state: JobState | None = None,
        kind: JobKind | None = None,
        label: Mapping[str, str] | None = None,
        parent: str | None = None,
    ) -> Iterator[JobSummary]:
        """All of them, newest first, a page at a time."""
        return each(lambda cursor: self.list(state, kind, label, AT_ONCE, cursor, parent))

    def get(self, id: str, wait: float = 0) -> BoundJob:
        """The job as it is, or as it is once it has ended within `wait` seconds (at most 60)."""
        return self._http.get(BoundJob, at(PATH, id), {"wait": wait or None}, wait=wait)

    def wait(
        self, id: str, timeout: float | None = None, on_event: Callable[[Event], object] | None = None
    ) -> BoundJob:
        """The job once it has ended, however it ended. A restart of the service in between is sat out."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if on_event is not None:
            for event in follow(self._http, id, deadline=deadline):
                on_event(event)
        while (job := self._wait_a_while(id, deadline)).state not in TERMINAL_STATES:
            check(deadline, id)
        return job

    def events(self, id: str, after: int = 0) -> Iterator[Event]:
        """What happened to the job after event number `after`, then live, until the job has ended.

        A connection that breaks off is made again, and goes on after the last event that was seen.
        """
        return follow(self._http, id, after)

    def cancel(self, id: str) -> BoundJob:
        """Stop the process that runs it."""
        return self._http.post(BoundJob, at(PATH, id, "cancel"))

    def retry(self, id: str) -> BoundJob:
        """Queue a failed or cancelled job again. It goes on from its last resume point."""
        return self._http.post(BoundJob, at(PATH, id, "retry"))

    def delete(self, id: str) -> None:
        """The job, its events, metrics and files; a comparison with its learners. What else it made stays."""
        self._http.delete(at(PATH, id))

    def metrics(self, id: str) -> Metrics:
        return self._http.get(Metrics, at(PATH, id, "metrics"))

    def logs(self, id: str) -> str:
        """What the runner printed."""
        content = self._http.content(at(PATH, id, "logs"))
        return content.decode()

    def artifact(self, id: str, name: str, to: str | PathLike[str]) -> Path:
        """A file that the job made, to the file or into the folder `to`."""
        return self._http.download(at(PATH, id, "artifacts", name), to, name)

    def report(self, id: str) -> Report:
        """All that is on record of a job that has ended."""
        return self._http.get(Report, at(PATH, id, "report.json"))

    def save_report(self, id: str, to: str | PathLike[str]) -> Path:
        """The same to look at: one HTML file with the pictures in it, to the file or into the folder `to`."""
        return self._http.download(at(PATH, id, "report.html"), to, f"{id}-report.html")

    def _wait_a_while(self, id: str, deadline: float | None) -> BoundJob:
        left = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
        wait = min(WAIT_SECONDS, left)
        return self._http.get(BoundJob, at(PATH, id), {"wait": wait}, wait=wait, pauses=within(left))
