from collections.abc import AsyncIterator

from flashcards.client.aio.http import Http
from flashcards.client.aio.resource import AT_ONCE, at, each
from flashcards.contract.resources import Page
from flashcards.contract.submissions import Submission, SubmissionState

PATH = "/v1/submissions"


class Submissions:
    """What came of messages that producers sent by the broker. By HTTP, `client.submit` queues jobs."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def list(
        self, state: SubmissionState | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[Submission]:
        """One page, newest first; its `next_cursor` asks for the next."""
        return await self._http.get(Page[Submission], PATH, {"state": state, "limit": limit, "cursor": cursor})

    def each(self, state: SubmissionState | None = None) -> AsyncIterator[Submission]:
        """All of them, newest first, a page at a time."""
        return each(lambda cursor: self.list(state, AT_ONCE, cursor))

    async def get(self, id: str) -> Submission:
        """By the id that the producer chose. NotFound until a worker has read the message."""
        return await self._http.get(Submission, at(PATH, id))
