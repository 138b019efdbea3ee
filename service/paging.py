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
    try:
        last_id = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise BadCursor from None
    if not re.fullmatch(rf"{what}_[0-9a-f]{{32}}", last_id):
        raise BadCursor
    return last_id
