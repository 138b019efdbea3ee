from urllib.parse import quote

from fastapi import Response
from fastapi.responses import StreamingResponse

from ledger.errors import NotFound
from service.deps import House


def download(house: House, tenant: str, digest: str, media_type: str, name: str, *, inline: bool = False) -> Response:
    """A blob, streamed. Names are quoted for the header and mean nothing to us."""
    try:
        size = house.store.size(tenant, digest)
    except FileNotFoundError:
        raise NotFound("file", name) from None
    headers = {
        "Content-Disposition": f"{'inline' if inline else 'attachment'}; filename*=UTF-8''{quote(name)}",
        "Content-Length": str(size),
        "ETag": f'"{digest}"',
    }
    return StreamingResponse(house.store.stream(tenant, digest), media_type=media_type, headers=headers)
