"""What models, datasets and flashcards have in common: pages, items, deletion."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar
from urllib.parse import quote

from flashcards.client.aio.http import Http
from flashcards.contract.base import Record
from flashcards.contract.resources import Page
from flashcards.errors import FlashcardsError

Item = TypeVar("Item", bound=Record)
AT_ONCE = 200


class Resource(Generic[Item]):
    path: str
    item: type[Item]
    page: type[Page[Item]]

    def __init__(self, http: Http) -> None:
        self._http = http

    async def list(self, limit: int = 50, cursor: str | None = None) -> Page[Item]:
        """One page, newest first; its `next_cursor` asks for the next."""
        return await self._http.get(self.page, self.path, {"limit": limit, "cursor": cursor})

    def each(self) -> AsyncIterator[Item]:
        """All of them, newest first, a page at a time."""
        return each(lambda cursor: self.list(AT_ONCE, cursor))

    async def get(self, id: str) -> Item:
        return await self._http.get(self.item, at(self.path, id))

    async def delete(self, id: str) -> None:
        await self._http.delete(at(self.path, id))


async def each(page: Callable[[str | None], Awaitable[Page[Item]]]) -> AsyncIterator[Item]:
    cursor = None
    while True:
        found = await page(cursor)
        for item in found.items:
            yield item
        cursor = found.next_cursor
        if cursor is None:
            return


def at(*parts: str) -> str:
    """The path of a thing by its id. Ids are the caller's words: a slash in one must not lead elsewhere."""
    first, *others = parts
    if "" in others:
        raise FlashcardsError("the id is empty")
    return "/".join([first, *(quote(part, safe="") for part in others)])
