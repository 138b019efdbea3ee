"""The way of an uploaded file: received, checked, kept, recorded. What exists afterwards is ready."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request, Response
from pydantic import BaseModel
from sqlalchemy.orm import Session

from flashcards.contract.bundle import BundleTaken
from flashcards.contract.uploads import UploadId
from ledger import blobs, quota, uploads
from ledger.keys import Principal
from ledger.settings import Settings
from ledger.store import Kept, hash_file
from service.bodies import Upload, received
from service.deps import House
from service.errors import UnfitFile
from service.files.checker import check_file
from service.files.errors import BadFile
from service.idempotency import Once, fingerprint
from service.uploads.gathering import answer_again, gathered

Facts = TypeVar("Facts")
Recorder = Callable[[Session, Upload, Facts], BaseModel]
Arrival = Callable[[Request, Settings, Callable[[], None]], AbstractAsyncContextManager[Upload]]

Parts = Callable[[Upload, Any, Path], Mapping[Kept, Path]]

#: How a raw body looks in the OpenAPI document.
_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
RAW_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _FILE}}
FILE_OR_UPLOAD: dict[str, Any] = {"requestBody": {"required": False, "content": _FILE}}

InParts = Annotated[
    UploadId | None, Query(description="the file came in parts: this upload is put together in place of a body")
]


def _whole(upload: Upload, facts: Any, made: Path) -> Mapping[Kept, Path]:
    return {Kept(upload.digest, upload.size): upload.path}


async def take_in(
    request: Request,
    house: House,
    principal: Principal,
    key: str | None,
    question: Any,
    record: Recorder[Any],
    status: int = 201,
    parts: Parts = _whole,
    arrival: Arrival = received,
    asked: str | None = None,
    upload_id: str | None = None,
) -> Response:
    """`parts` says which files are kept of it, where that is not the file itself; `arrival` is how the file comes here;
    `asked` marks the request where the file itself does not. `upload_id`: the file came before, in parts."""
    declared = request.headers.get("content-length", "")
    await asyncio.to_thread(_check_room, house, principal, int(declared) if declared.isdigit() else 0)
    if upload_id is not None:
        asked = fingerprint(request.method, request.url.path, request.url.query)
        arrival = gathered(house, principal.tenant, upload_id)
    once = Once(house.db, principal.tenant, key)
    await asyncio.to_thread(once.reserve)
    try:
        if asked is not None and (known := once.answered_before(asked)) is not None:
            return known
        async with arrival(request, house.settings, once.hold_on) as upload, _beside(upload) as made:
            mark = asked or fingerprint(request.method, request.url.path, request.url.query, upload.digest)
            before = once.answered_before(mark)
            if before is not None:
                return before
            with once.holding():  # a zip of many images takes long to check, and a bucket is far away
                async with house.checks:
                    facts = await _check(upload, question, made)
                    kept = await asyncio.to_thread(_to_keep, upload, made)
                    files = await asyncio.to_thread(parts, kept, facts, made)
                keeping = Keeping(house, principal, once, mark, status, upload_id)
                return await asyncio.to_thread(keeping.keep, kept, files, facts, record)
    except uploads.Answered as before:
        once.give_up()
        return answer_again(before.answer, asked or "")
    except BaseException:
        # A cancelled task (the client hung up) may not await for long, and this is one short write.
        once.give_up()
        raise


@asynccontextmanager
async def _beside(upload: Upload) -> AsyncIterator[Path]:
    """Where a file or a folder is put that is kept in the upload's place. Gone with it, unless the store took it."""
    made = upload.path.with_suffix(".made")
    try:
        yield made
    finally:
        shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)


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


@dataclass(frozen=True)
class Keeping:
    """The last step: the files are put, and what they are goes on record with the answer."""

    house: House
    principal: Principal
    once: Once
    mark: str
    status: int
    upload_id: str | None

    def keep(self, upload: Upload, files: Mapping[Kept, Path], facts: Any, record: Recorder[Any]) -> Response:
        def put_on_record(session: Session) -> Response:
            made = record(session, upload, facts)
            answer = uploads.Answer(self.mark, self.status, _location(made), made.model_dump_json())
            if self.upload_id is not None:
                uploads.close(session, self.house.settings, self.principal.tenant, self.upload_id, answer)
            quota.check_room(session, self.principal)
            return self.once.keep(session, self.mark, self.status, answer.body, answer.location)

        db, store, tenant = self.house.db, self.house.store, self.principal.tenant
        answer = blobs.keep_all(db, store, tenant, files, put_on_record)
        if self.upload_id is not None:
            uploads.clear_landed(db, store, tenant, self.upload_id)
        return answer


def _location(made: BaseModel) -> str:
    found = made.made if isinstance(made, BundleTaken) else made
    return f"{LOCATIONS[type(found).__name__]}/{found.id}"  # type: ignore[attr-defined]


LOCATIONS = {"Model": "/v1/models", "Dataset": "/v1/datasets", "Learner": "/v1/learners"}
