from urllib.parse import quote

from fastapi import Response
from fastapi.responses import StreamingResponse

from ledger.errors import NotFound
from service.deps import House


async def download(
    house: House, tenant: str, digest: str, size: int | None, media_type: str, name: str, *, inline: bool = False
) -> Response:
    """A blob, streamed. Names are quoted for the header and mean nothing to us."""
    try:
        chunks = await house.store.stream(tenant, digest)
    except FileNotFoundError:
        raise NotFound("file", name) from None
    disposition = "inline" if inline else "attachment"
    headers = {"Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(name)}", "ETag": f'"{digest}"'}
    if size is not None:
        headers["Content-Length"] = str(size)
    return StreamingResponse(chunks, media_type=media_type, headers=headers)
