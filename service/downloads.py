"""Files on their way out: whole or a part of them, streamed from the store, or a link to it."""

import re
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from ledger.errors import NotFound
from service.deps import House
from service.errors import MEDIA_TYPE, OutOfRange

FRESH = {"Cache-Control": "private, no-cache"}
#: For the key that it was fetched with, and no other that signs in on the same browser.
LASTING = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": "Authorization, Cookie"}


@dataclass(frozen=True)
class Wish:
    """How the caller wants the file."""

    head: bool
    presign: bool
    range: str | None
    if_range: str | None
    if_none_match: str | None


async def _wish(
    request: Request,
    presign: Annotated[
        bool, Query(description="answer with a link to the store itself, where it gives links; else with the file")
    ] = False,
    range: Annotated[str | None, Header(max_length=200, description="a part of the file, as bytes=0-99")] = None,
    if_range: Annotated[str | None, Header(max_length=200)] = None,
    if_none_match: Annotated[str | None, Header(max_length=1000, description="ETags of what you have")] = None,
) -> Wish:
    return Wish(request.method == "HEAD", presign, range, if_range, if_none_match)


WishDep = Annotated[Wish, Depends(_wish)]


Answers = dict[int | str, dict[str, Any]]
PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def conflict(words: str) -> Answers:
    """A file that cannot be had as things are, for the OpenAPI document."""
    return {409: {"description": words, "content": PROBLEM}}


def file_answers(media_type: str = "application/octet-stream") -> Answers:
    """What a download may answer, for the OpenAPI document."""
    return {
        200: {"content": {media_type: {}}},
        206: {"description": "the part that was asked for", "content": {media_type: {}}},
        304: {"description": "what you have is what there is"},
        307: {"description": "a link to the store, good for a while"},
        416: {"description": "the file is shorter than that", "content": PROBLEM},
    }


def download(
    house: House,
    tenant: str,
    digest: str,
    media_type: str,
    name: str,
    wish: Wish,
    *,
    inline: bool = False,
    lasting: bool = False,
) -> Response:
    """A blob. Names are quoted for the header and mean nothing to us. What lasts never changes under its address."""
    headers = {"ETag": f'"{digest}"', **(LASTING if lasting else FRESH)}
    if _has_it(wish, digest):
        return Response(status_code=304, headers=headers)
    if wish.presign and not wish.head and (link := house.store.sign(tenant, digest, house.settings.presign_seconds)):
        return Response(status_code=307, headers={**headers, "Cache-Control": "no-store", "Location": link})
    headers |= {
        "Accept-Ranges": "bytes",
        "Content-Disposition": f"{'inline' if inline else 'attachment'}; filename*=UTF-8''{quote(name)}",
    }
    try:
        return _stream(house, tenant, digest, media_type, headers, wish)
    except FileNotFoundError:
        raise NotFound("file", name) from None


def _stream(house: House, tenant: str, digest: str, media_type: str, headers: dict[str, str], wish: Wish) -> Response:
    if wish.head:
        headers["Content-Length"] = str(house.store.size(tenant, digest))
        return Response(status_code=200, headers=headers, media_type=media_type)
    span = None
    if wish.range is not None and wish.if_range in (None, f'"{digest}"'):
        span = parse_range(wish.range, house.store.size(tenant, digest))
    reading = house.store.open(tenant, digest, span)
    headers["Content-Length"] = str(reading.end - reading.start)
    if span is not None:
        headers["Content-Range"] = f"bytes {reading.start}-{reading.end - 1}/{reading.size}"
    return StreamingResponse(reading.chunks(), 206 if span else 200, headers, media_type)


def _has_it(wish: Wish, digest: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in (wish.if_none_match or "").split(",")]
    return f'"{digest}"' in tags or tags == ["*"]


def parse_range(text: str, size: int) -> tuple[int, int] | None:
    """First byte, and the one after the last. None: not one range of bytes, which a server may leave aside."""
    found = re.fullmatch(r"bytes=(\d{1,18})?-(\d{1,18})?", text.strip(), re.ASCII)
    if found is None or found[1] is found[2] is None:
        return None
    first, last = found[1], found[2]
    if first is None:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last is not None else size
        if last is not None and int(last) < start:
            return None
    if start >= end:
        raise OutOfRange(size)
    return start, end
