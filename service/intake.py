"""The way of an uploaded file: received, checked, kept, recorded. What exists afterwards is ready."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel
from sqlalchemy.orm import Session

from ledger import blobs, quota
from ledger.keys import Principal
from ledger.store import Kept, hash_file
from service.deps import House
from service.errors import UnfitFile
from service.files.checker import check_file
from service.files.errors import BadFile
from service.idempotency import Once, fingerprint
from service.uploads import Upload, received

Facts = TypeVar("Facts")
Recorder = Callable[[Session, Upload, Facts], BaseModel]

#: How a raw body looks in the OpenAPI document.
RAW_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def take_in(
    request: Request,
    house: House,
    principal: Principal,
    key: str | None,
    question: Any,
    record: Recorder[Any],
    status: int = 201,
) -> Response:
    declared = request.headers.get("content-length", "")
    await asyncio.to_thread(_check_room, house, principal, int(declared) if declared.isdigit() else 0)
    once = Once(house.db, principal.tenant, key)
    await asyncio.to_thread(once.reserve)
    try:
        async with received(request, house.settings, once.hold_on) as upload, _beside(upload) as made:
            mark = fingerprint(request.method, request.url.path, request.url.query, upload.digest)
            before = once.answered_before(mark)
            if before is not None:
                return before
            with once.holding():  # a zip of many images takes long to check, and a bucket is far away
                async with house.checks:
                    facts = await _check(upload, question, made)
                    kept = await asyncio.to_thread(_to_keep, upload, made)
                return await asyncio.to_thread(_keep, house, principal, once, mark, kept, facts, record, status)
    except BaseException:
        # A cancelled task (the client hung up) may not await for long, and this is one short write.
        once.give_up()
        raise


@asynccontextmanager
async def _beside(upload: Upload) -> AsyncIterator[Path]:
    """Where a conversion puts what is kept in the upload's place. Gone with it, unless the store took it."""
    made = upload.path.with_suffix(".made")
    try:
        yield made
    finally:
        made.unlink(missing_ok=True)


async def _check(upload: Upload, question: Any, made: Path) -> Any:
    try:
        return await check_file(upload.path, question, made)
    except BadFile as bad:
        raise UnfitFile(bad.title, bad.detail) from None


def _check_room(house: House, principal: Principal, size: int) -> None:
    if principal.max_stored_bytes is not None:
        with house.db.write() as session:
            quota.check_room(session, principal, size)


def _to_keep(upload: Upload, made: Path) -> Upload:
    if not made.exists():
        return upload
    kept = hash_file(made)
    return Upload(made, kept.digest, kept.size, uploaded_digest=upload.digest)


def _keep(
    house: House,
    principal: Principal,
    once: Once,
    mark: str,
    upload: Upload,
    facts: Any,
    record: Recorder[Any],
    status: int,
) -> Response:
    def put_on_record(session: Session) -> Response:
        made = record(session, upload, facts)
        quota.check_room(session, principal)
        location = f"{LOCATIONS[type(made).__name__]}/{made.id}"  # type: ignore[attr-defined]
        return once.keep(session, mark, status, made.model_dump_json(), location)

    kept = Kept(upload.digest, upload.size)
    return blobs.keep(house.db, house.store, principal.tenant, kept, upload.path, put_on_record)


LOCATIONS = {"Model": "/v1/models", "Dataset": "/v1/datasets"}
