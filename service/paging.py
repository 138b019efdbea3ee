import base64
import binascii
import re
from typing import Annotated

from fastapi import Query

from service.errors import BadCursor

Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before")]


def encode_cursor(last_id: str | None) -> str | None:
    return None if last_id is None else base64.urlsafe_b64encode(last_id.encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, what: str) -> str | None:
    if cursor is None:
        return None
    last_id = _decode(cursor)
    if not re.fullmatch(rf"{what}_[0-9a-f]{{32}}", last_id):
        raise BadCursor
    return last_id


def decode_number(cursor: str | None) -> int | None:
    """Where a page of numbered things ended."""
    if cursor is None:
        return None
    found = _decode(cursor)
    if not re.fullmatch(r"[0-9]{1,18}", found):
        raise BadCursor
    return int(found)


def encode_mark(mark: tuple[float, str] | None) -> str | None:
    """Where a page ended that is in the order of time and digest."""
    return None if mark is None else encode_cursor(f"{mark[0].hex()} {mark[1]}")


def decode_mark(cursor: str | None) -> tuple[float, str] | None:
    if cursor is None:
        return None
    found = re.fullmatch(r"(0x1\.[0-9a-f]{1,13}p\+[0-9]{1,2}) ([0-9a-f]{64})", _decode(cursor))
    if found is None:
        raise BadCursor
    return float.fromhex(found[1]), found[2]


def _decode(cursor: str) -> str:
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise BadCursor from None
