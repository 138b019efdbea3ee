"""The lock in the door: which key opens what. Asked before a route is looked for, so that none can be forgotten."""

import asyncio
import re

from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.types import Scope

from ledger.keys import BadKey, Keyring, Principal
from service.errors import DatabaseAway, Unauthorized, WrongScope

#: What probes and browsers see before they have a key. It tells nothing of what is kept here.
OPEN = frozenset({"/", "/page.js", "/healthz", "/readyz", "/openapi.json"})
ADMIN = re.compile(r"/v1/keys(/.*)?|/metrics")
READING = frozenset({"GET", "HEAD", "OPTIONS"})
BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


async def authenticate(keyring: Keyring | None, scope: Scope) -> Principal:
    if keyring is None or scope["path"] in OPEN:
        return Principal()
    principal = await _recognise(keyring, Headers(scope=scope).get("authorization"))
    needed = needed_scope(scope["method"], scope["path"])
    if needed not in principal.scopes:
        has = ", ".join(sorted(principal.scopes))
        raise WrongScope(f"this takes a key with the scope {needed}, and yours has {has}")
    if scope["path"] == "/metrics" and not principal.is_operator:
        raise WrongScope("the figures of all tenants are for whoever runs the service")
    return principal


def needed_scope(method: str, path: str) -> str:
    if ADMIN.fullmatch(path):
        return "admin"
    return "read" if method in READING else "write"


async def _recognise(keyring: Keyring, header: str | None) -> Principal:
    if header is None:
        raise Unauthorized("send your key as Authorization: Bearer fc_...")
    match = BEARER.fullmatch(header.strip())
    if match is None:
        raise Unauthorized("the Authorization header must read: Bearer fc_...")
    try:
        return await asyncio.to_thread(keyring.recognise, match[1])
    except BadKey as bad:
        raise Unauthorized(str(bad)) from None
    except SQLAlchemyError as error:
        raise DatabaseAway.from_error(error) from error
