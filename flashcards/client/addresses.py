"""Where a service is, and what a request carries there."""

from collections.abc import Mapping
from typing import Any

import httpx

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
Params = Mapping[str, Any]


def is_local(url: str) -> bool:
    return host_of(url) in LOOPBACK


def host_of(url: str) -> str:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError(f"{url!r} is no address of a service; write it like http://127.0.0.1:8642")
    return address.host


def authorization(key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("that is not a key: it would begin with fc_")
    return {"Authorization": f"Bearer {key}"}


def given(params: Params | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def announced_digest(answer: httpx.Response) -> str:
    return str(answer.headers.get("ETag", "")).strip('"')
