"""The parts of a runner's work, told apart by what its progress counts: the engine itself knows nothing of traces."""

import time
from collections.abc import Callable

from flashcards.contract.resources import Progress
from worker.messages import SaidStage

LOADING, WRITING = "load", "write"
MOST = 100  # a comparison of passes and epochs goes to and fro


class Stages:
    """First what is read, then one a unit (`cards`, `images`, `passes`), then what is written."""

    def __init__(self, say: Callable[[SaidStage], None]) -> None:
        self._say = say
        self._name = LOADING
        self._began_at = self._seen_at = time.time()
        self._left = MOST

    def heard(self, progress: Progress) -> None:
        self._seen_at = time.time()
        name = progress.unit or "work"
        if name != self._name:
            self._end(name, self._seen_at)

    def finish(self) -> None:
        """What comes after the last step is the writing of files."""
        if self._name != LOADING:
            self._end(WRITING, self._seen_at)
        self._end("", time.time())

    def _end(self, following: str, at: float) -> None:
        if self._left:
            self._left -= 1
            self._say(SaidStage(name=self._name, began_at=self._began_at, ended_at=at))
        self._name, self._began_at = following, at
