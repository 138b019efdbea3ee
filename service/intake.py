"""The way of an uploaded file: received, checked, kept, recorded. What exists afterwards is ready."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel
from sqlalchemy.orm import Session

from ledger import artifacts
from ledger.artifacts import Kept
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
    tenant: str,
    key: str | None,
    question: Any,
    record: Recorder[Any],
    status: int = 201,
) -> Response:
    once = Once(house.db, tenant, key)
    await asyncio.to_thread(once.reserve)
    try:
        async with received(request, house.settings, once.hold_on) as upload:
            mark = fingerprint(request.method, request.url.path, request.url.query, upload.digest)
            before = once.answered_before(mark)
            if before is not None:
                return before
            async with house.checks:
                facts = await _check(upload, question)
            return await asyncio.to_thread(_keep, house, tenant, once, mark, upload, facts, record, status)
    except BaseException:
        # A cancelled task (the client hung up) may not await for long, and this is one short write.
        once.give_up()
        raise


async def _check(upload: Upload, question: Any) -> Any:
    try:
        return await check_file(upload.path, question)
    except BadFile as bad:
        raise UnfitFile(bad.title, bad.detail) from None


def _keep(
    house: House, tenant: str, once: Once, mark: str, upload: Upload, facts: Any, record: Recorder[Any], status: int
) -> Response:
    house.store.keep(tenant, upload.digest, upload.path)
    with house.db.write() as session:
        artifacts.record_blob(session, tenant, Kept(upload.digest, upload.size))
        made = record(session, upload, facts)
        location = f"{LOCATIONS[type(made).__name__]}/{made.id}"  # type: ignore[attr-defined]
        return once.keep(session, mark, status, made.model_dump_json(), location)


LOCATIONS = {"Model": "/v1/models", "Dataset": "/v1/datasets"}
