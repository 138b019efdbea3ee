# Made from aio/submissions.py by `make client`: change it there.
from collections.abc import Iterator

from flashcards.client.http import Http
from flashcards.client.resource import AT_ONCE, at, each
from flashcards.contract.resources import Page
from flashcards.contract.submissions import Submission, SubmissionState

PATH = "/v1/submissions"


class Submissions:
    """What came of messages that producers sent by the broker. By HTTP, `client.submit` queues jobs."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self, state: SubmissionState | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[Submission]:
        """One page, newest first; its `next_cursor` asks for the next."""
        return self._http.get(Page[Submission], PATH, {"state": state, "limit": limit, "cursor": cursor})

    def each(self, state: SubmissionState | None = None) -> Iterator[Submission]:
        """All of them, newest first, a page at a time."""
        return each(lambda cursor: self.list(state, AT_ONCE, cursor))

    def get(self, id: str) -> Submission:
        """By the id that the producer chose. NotFound until a worker has read the message."""
        return self._http.get(Submission, at(PATH, id))
