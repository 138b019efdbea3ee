# Made from aio/storage.py by `make client`: change it there.
from collections.abc import Iterator

from flashcards.client.http import Http
from flashcards.client.resource import AT_ONCE
from flashcards.contract.resources import Storage, StoredFile

PATH = "/v1/storage"


def read(http: Http, limit: int, cursor: str | None) -> Storage:
    return http.get(Storage, PATH, {"limit": limit, "cursor": cursor})


def each_file(http: Http) -> Iterator[StoredFile]:
    cursor = None
    while True:
        page = read(http, AT_ONCE, cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return
