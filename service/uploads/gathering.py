"""The parts of an upload, put together: to `?upload=...` what a body is to a plain upload."""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from fastapi import Request, Response
from uuid_utils import uuid4

from ledger import landing, uploads
from ledger.errors import Complete, Incomplete, WrongDigest
from ledger.settings import Settings
from ledger.store import Kept, Store
from ledger.tables import Upload as UploadRow
from service.bodies import Upload
from service.deps import House
from service.errors import Invalid
from service.idempotency import patiently, respond

NAMED = 10


def gathered(
    house: House, tenant: str, upload_id: str
) -> Callable[[Request, Settings, Callable[[], None]], AbstractAsyncContextManager[Upload]]:
    @asynccontextmanager
    async def arrival(request: Request, settings: Settings, hold_on: Callable[[], None]) -> AsyncIterator[Upload]:
        _check_no_body(request)
        path = settings.spool_folder / uuid4().hex
        try:
            yield await patiently(lambda: _gather(house, tenant, upload_id, path), hold_on)
        finally:
            path.unlink(missing_ok=True)

    return arrival


def answer_again(answer: uploads.Answer, asked: str) -> Response:
    """To the same request the same answer; another one came too late."""
    if answer.mark != asked:
        raise Complete(f"it has become {answer.location} by another request: begin another upload")
    return respond(answer.status, answer.body, answer.location, replayed=True)


def _check_no_body(request: Request) -> None:
    length = request.headers.get("content-length", "0")
    if length != "0" or "transfer-encoding" in request.headers:
        raise Invalid("body", "the file is in the upload that is named: send no body beside it")


def _gather(house: House, tenant: str, upload_id: str, path: Path) -> Upload:
    with house.db.write() as session:
        row = uploads.find(session, tenant, upload_id)
        if (answer := uploads.answered(row)) is not None:
            raise uploads.Answered(answer)
        uploads.prolong(session, house.settings, row)
        parts = uploads.parts_of(session, [row.id])[row.id]
    if missing := uploads.missing(house.store, row, parts):
        some = ", ".join(map(str, missing[:NAMED])) + (", ..." if len(missing) > NAMED else "")
        raise Incomplete(f"{len(missing)} of {uploads.count(row)} parts are not here as they must be: {some}")
    kept = _write(house.store, row, parts, path)
    if kept != Kept(row.digest, row.size):
        detail = (
            f"put together it has {kept.size:,} bytes and the SHA-256 {kept.digest}, and {row.digest} was announced"
        )
        raise WrongDigest(f"{detail}: send the parts again, or begin another upload")
    return Upload(path, kept.digest, kept.size)


def _write(store: Store, row: UploadRow, parts: dict[int, Kept], path: Path) -> Kept:
    """What lies in the bucket may have been put there anew since it was looked at: it is never read past its size."""
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as file:
        for number in range(1, uploads.count(row) + 1):
            for chunk in _chunks(store, row, number, parts.get(number)):
                size += len(chunk)
                if size > row.size:
                    raise WrongDigest(f"part {number} is longer than it may be")
                digest.update(chunk)
                file.write(chunk)
    return Kept(digest.hexdigest(), size)


def _chunks(store: Store, row: UploadRow, number: int, part: Kept | None) -> Iterator[bytes]:
    try:
        if part is not None:
            yield from store.chunks(row.tenant, part.digest)
        else:
            yield from store.chunks_of(landing.key(row.tenant, row.id, number))
    except FileNotFoundError:
        raise Incomplete(f"part {number} has gone: send it again") from None
