from collections.abc import AsyncIterator

from flashcards.client.aio.http import Http
from flashcards.client.aio.resource import AT_ONCE
from flashcards.contract.resources import Storage, StoredFile

PATH = "/v1/storage"


async def read(http: Http, limit: int, cursor: str | None) -> Storage:
    return await http.get(Storage, PATH, {"limit": limit, "cursor": cursor})


async def each_file(http: Http) -> AsyncIterator[StoredFile]:
    cursor = None
    while True:
        page = await read(http, AT_ONCE, cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return
