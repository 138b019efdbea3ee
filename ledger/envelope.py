"""A message as it lies in the broker: the task `flashcards.submit` in Celery's envelope, or the bare fields as JSON.

Nothing but JSON is read. Celery's second protocol is `[args, kwargs, embed]` in a body, and what is said about it in
`headers`; kombu's virtual transports wrap that once more, as JSON with the body in base64.
"""

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

TASK = "flashcards.submit"


class Unreadable(Exception):
    """Nobody can be told: it is not known who sent it, nor what it calls itself."""


@dataclass(frozen=True)
class Letter:
    id: str
    token: str | None
    fields: dict[str, Any]
    trouble: str | None = None  # why it cannot be taken in, whatever the fields say


def unfold(raw: bytes, longest: int) -> Letter:
    if len(raw) > longest:
        raise Unreadable(f"it has {len(raw):,} bytes, and {longest:,} are allowed")
    outside = _json(raw)
    if not isinstance(outside, dict):
        raise Unreadable("it is no JSON object")
    if "headers" not in outside and "properties" not in outside:
        return _letter(outside, None, None)
    headers = outside.get("headers")
    headers = headers if isinstance(headers, dict) else {}
    fields, trouble = _inside(outside, headers)
    return _letter(fields, headers.get("id"), trouble)


def _letter(fields: dict[str, Any], task_id: Any, trouble: str | None) -> Letter:
    """The id of the fields goes before Celery's own, which is a random one where the producer chose none."""
    id = fields.get("id", task_id)
    if not isinstance(id, str) or not id:
        raise Unreadable("it has no id")
    token = fields.get("token")
    return Letter(id, token if isinstance(token, str) else None, {**fields, "id": id}, trouble)


def _inside(outside: dict[str, Any], headers: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    trouble = _trouble(outside, headers)
    try:
        args, kwargs, _ = _body(outside)
    except (Unreadable, ValueError, TypeError) as error:
        return {}, trouble or f"its body cannot be read: {error}"
    if not isinstance(kwargs, dict):
        return {}, trouble or "its fields are to be sent as kwargs"
    if args:
        trouble = trouble or "its fields are to be sent as kwargs, and there are args"
    return kwargs, trouble


def _trouble(outside: dict[str, Any], headers: dict[str, Any]) -> str | None:
    if outside.get("content-type") not in ("application/json", None):
        return f"only JSON is read here, and this is {outside['content-type']!r}"[:200]
    if headers.get("compression"):
        return "compressed messages are not read here"
    if headers.get("task") != TASK:
        return f"this queue takes the task {TASK}, and this is {headers.get('task')!r}"[:200]
    if headers.get("eta"):
        return "a job is queued at once: send it when it is to start, without eta or countdown"
    if _has_expired(headers.get("expires")):
        return f"it had expired at {headers['expires']}"[:200]
    return None


def _has_expired(at: Any) -> bool:
    if not isinstance(at, str):
        return False
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return False
    return moment.replace(tzinfo=moment.tzinfo or UTC) < datetime.now(UTC)


def _body(outside: dict[str, Any]) -> Any:
    body, properties = outside.get("body"), outside.get("properties")
    encoding = properties.get("body_encoding") if isinstance(properties, dict) else None
    if not isinstance(body, str):
        return body  # as it is, where somebody has not packed it twice
    if encoding == "base64":
        try:
            return _json(base64.b64decode(body, validate=True))
        except binascii.Error as error:
            raise Unreadable(str(error)) from None
    return _json(body.encode())


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no JSON: {error}"[:200]) from None
