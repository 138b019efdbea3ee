import asyncio
import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from sqlalchemy.orm import Session

from flashcards.contract.resources import Page
from flashcards.contract.uploads import (
    Links,
    NewLinks,
    NewUpload,
    PartLink,
    PartNumber,
    Upload,
    UploadedPart,
    UploadId,
)
from ledger import blobs, landing, paging, scope, tables, uploads
from ledger.errors import NoLinks, WrongDigest
from ledger.store import Kept
from service import views
from service.bodies import spooled
from service.deps import House, HouseDep, IdempotencyKey, PrincipalDep, TenantDep
from service.errors import Invalid, TooLarge
from service.idempotency import fingerprint, once
from service.intake import RAW_BODY
from service.paging import Cursor, Limit, decode_cursor

router = APIRouter(prefix="/v1/uploads", tags=["uploads"])

#: RFC 9530. Other algorithms may be named beside it, and are left alone.
CONTENT_DIGEST = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):\s*(?=,|$)")


@router.post("", status_code=201, response_model=Upload, responses={200: {"model": Upload}})
def create_upload(
    asked: NewUpload, request: Request, house: HouseDep, principal: PrincipalDep, idempotency_key: IdempotencyKey = None
) -> Response:
    """Begin to send a large file in parts, or go on: an upload of the same file that is still open answers with 200.

    When no part is missing any more, `POST /v1/models?upload=ID&...`, `/v1/datasets` or `/v1/bundles` makes of it what
    they make of a body.
    """
    limit = house.settings.max_upload_bytes
    if asked.size > limit:
        raise TooLarge(f"{asked.size:,} bytes were announced; {limit:,} are allowed")
    mark = fingerprint("POST", request.url.path, asked.model_dump_json())
    with once(house.db, principal.tenant, idempotency_key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        with house.db.write() as session:
            row, new = uploads.begin(session, house.settings, principal, asked.digest, asked.size)
            (shown,) = _shown(house, session, [row])
            body, location = shown.model_dump_json(), f"/v1/uploads/{row.id}"
            return attempt.keep(session, mark, 201 if new else 200, body, location)


@router.get("")
def list_uploads(house: HouseDep, tenant: TenantDep, limit: Limit = 50, cursor: Cursor = None) -> Page[Upload]:
    """Those that are open, and for a day those that became something."""
    before = decode_cursor(cursor, "upload")
    with house.db.read() as session:
        theirs = scope.scoped(tables.Upload, tenant).where(uploads.is_there())
        rows, last = paging.page(session, theirs, tables.Upload.id, limit, before)
        return views.page(_shown(house, session, rows), last)


@router.get("/{upload_id}")
def get_upload(upload_id: UploadId, house: HouseDep, tenant: TenantDep) -> Upload:
    with house.db.read() as session:
        (shown,) = _shown(house, session, [uploads.find(session, tenant, upload_id)])
    return shown


@router.delete("/{upload_id}", status_code=204)
def delete_upload(upload_id: UploadId, house: HouseDep, tenant: TenantDep) -> None:
    """With its parts. What was made of it stays."""
    with house.db.write() as session:
        row = uploads.find(session, tenant, upload_id, lock=True)
        if row.linked:
            landing.clear(house.store, tenant, row.id)
        uploads.discard(session, row)


@router.put("/{upload_id}/parts/{part}", response_model=UploadedPart, openapi_extra=RAW_BODY)
async def put_upload_part(
    upload_id: UploadId,
    part: PartNumber,
    request: Request,
    house: HouseDep,
    tenant: TenantDep,
    content_digest: Annotated[
        str | None, Header(max_length=1000, description="sha-256=:BASE64: of the part (RFC 9530), to have it checked")
    ] = None,
) -> UploadedPart:
    """The body is the part. Sent again it takes the place of the one that is there; once answered it is kept."""
    announced = _announced(content_digest)
    size = await asyncio.to_thread(_size, house, tenant, upload_id, part)
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) < size:
        raise _too_short(part, int(length), size)
    async with spooled(request, house.settings, size, lambda: None) as came:
        if came.size < size:
            raise _too_short(part, came.size, size)
        if announced not in (None, came.digest):
            raise WrongDigest(f"part {part} came with the SHA-256 {came.digest}, and {announced} was announced")
        kept = Kept(came.digest, came.size)

        def record(session: Session) -> None:
            uploads.take_part(session, house.settings, tenant, upload_id, part, kept)

        await asyncio.to_thread(blobs.keep, house.db, house.store, tenant, kept, came.path, record)
    return UploadedPart(part=part, size=kept.size, digest=kept.digest)


@router.post("/{upload_id}/links")
def create_upload_links(upload_id: UploadId, asked: NewLinks, house: HouseDep, tenant: TenantDep) -> Links:
    """Addresses in the store itself that parts can be put to, for a while; 409 where the store gives none.

    What is put there is looked at when the upload is put together. The answer is not stored, and asking again gives new
    links.
    """
    seconds = house.settings.presign_seconds
    with house.db.write() as session:
        row = uploads.find_open(session, tenant, upload_id, lock=True)
        if (wrong := max(asked.parts)) > uploads.count(row):
            raise _no_such_part(row, wrong, "body.parts")
        expires_at = datetime.now(UTC) + timedelta(seconds=seconds)
        links = [_link(house, row, number) for number in dict.fromkeys(asked.parts)]
        row.linked = True
        uploads.prolong(session, house.settings, row)
    return Links(links=links, expires_at=expires_at)


def _link(house: House, row: tables.Upload, number: int) -> PartLink:
    key = landing.key(row.tenant, row.id, number)
    url = house.store.sign_put(key, house.settings.presign_seconds)
    if url is None:
        raise NoLinks("files are kept in a folder, or by keys that cannot sign: PUT the parts to this service")
    return PartLink(part=number, size=uploads.size_of(row, number), url=url)


def _shown(house: House, session: Session, rows: Sequence[tables.Upload]) -> list[Upload]:
    parts = uploads.parts_of(session, [row.id for row in rows])
    return [views.upload(row, uploads.missing(house.store, row, parts[row.id])) for row in rows]


def _size(house: House, tenant: str, upload_id: str, part: int) -> int:
    with house.db.read() as session:
        row = uploads.find_open(session, tenant, upload_id)
    if part > uploads.count(row):
        raise _no_such_part(row, part, "path.part")
    return uploads.size_of(row, part)


def _announced(header: str | None) -> str | None:
    """As our digests are written."""
    if header is None:
        return None
    found = CONTENT_DIGEST.search(header)
    if found is None:
        raise Invalid("header.content-digest", "write it as sha-256=:BASE64: of the 32 bytes")
    return base64.b64decode(found[1]).hex()


def _no_such_part(row: tables.Upload, part: int, field: str) -> Invalid:
    return Invalid(field, f"this upload has the parts 1 to {uploads.count(row)}, and there is no part {part}")


def _too_short(part: int, came: int, size: int) -> Invalid:
    return Invalid("body", f"part {part} has {size:,} bytes, and {came:,} came")
