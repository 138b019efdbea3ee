# Made from aio/resource.py by `make client`: change it there.
"""What models, datasets and flashcards have in common: pages, items, deletion."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar
from urllib.parse import quote

from flashcards.client.http import Http
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

    def list(self, limit: int = 50, cursor: str | None = None) -> Page[Item]:
        """One page, newest first; its `next_cursor` asks for the next."""
        return self._http.get(self.page, self.path, {"limit": limit, "cursor": cursor})

    def each(self) -> Iterator[Item]:
        """All of them, newest first, a page at a time."""
        return each(lambda cursor: self.list(AT_ONCE, cursor))

    def get(self, id: str) -> Item:
        return self._http.get(self.item, at(self.path, id))

    def delete(self, id: str) -> None:
        self._http.delete(at(self.path, id))


def each(page: Callable[[str | None], Page[Item]]) -> Iterator[Item]:
    cursor = None
    while True:
        found = page(cursor)
        yield from found.items
        cursor = found.next_cursor
        if cursor is None:
            return


def at(*parts: str) -> str:
    """The path of a thing by its id. Ids are the caller's words: a slash in one must not lead elsewhere."""
    first, *others = parts
    if "" in others:
        raise FlashcardsError("the id is empty")
    return "/".join([first, *(quote(part, safe="") for part in others)])
