import math
import time
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path

from flashcards.client.follow import check, follow
from flashcards.client.http import Http
from flashcards.client.patience import within
from flashcards.client.resource import AT_ONCE, at, each
from flashcards.contract.resources import TERMINAL_STATES, Event, Job, JobState, JobSummary, Metrics, Page
from flashcards.contract.specs import JobKind

PATH = "/v1/jobs"
WAIT_SECONDS = 30.0


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
        """One page, newest first; its `next_cursor` asks for the next. With `parent`, the tasks of a comparison."""
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

    def get(self, id: str, wait: float = 0) -> Job:
        """The job as it is, or as it is once it has ended within `wait` seconds (at most 60)."""
        return self._http.get(Job, at(PATH, id), {"wait": wait or None}, wait=wait)

    def wait(self, id: str, timeout: float | None = None, on_event: Callable[[Event], object] | None = None) -> Job:
        """The job once it has ended, however it ended. A restart of the service in between is sat out."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if on_event is not None:
            for event in follow(self._http, id, deadline=deadline):
                on_event(event)
        while (job := self._wait_a_while(id, deadline)).state not in TERMINAL_STATES:
            check(deadline, id)
        return job

    def events(self, id: str, after: int = 0) -> Iterator[Event]:
        """What happened to the job after event number `after`, then live, until the job has ended."""
        return follow(self._http, id, after)

    def cancel(self, id: str) -> Job:
        """Stop the process that runs it."""
        return self._http.post(Job, at(PATH, id, "cancel"))

    def retry(self, id: str) -> Job:
        """Queue a failed or cancelled job again. It goes on from its last resume point."""
        return self._http.post(Job, at(PATH, id, "retry"))

    def delete(self, id: str) -> None:
        """The job, its events, metrics and files; a comparison with its learners. What else it made stays."""
        self._http.delete(at(PATH, id))

    def metrics(self, id: str) -> Metrics:
        return self._http.get(Metrics, at(PATH, id, "metrics"))

    def logs(self, id: str) -> str:
        """What the runner printed."""
        return self._http.content(at(PATH, id, "logs")).decode()

    def artifact(self, id: str, name: str, to: str | PathLike[str]) -> Path:
        """A file that the job made, to the file or into the folder `to`."""
        return self._http.download(at(PATH, id, "artifacts", name), to, name)

    def _wait_a_while(self, id: str, deadline: float | None) -> Job:
        left = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
        wait = min(WAIT_SECONDS, left)
        return self._http.get(Job, at(PATH, id), {"wait": wait}, wait=wait, pauses=within(left))
