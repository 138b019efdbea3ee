"""The lock in the door: which key opens what. Asked before a route is looked for, so that none can be forgotten."""

import asyncio
import re
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from fastapi import Depends, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.types import Scope

from ledger.keys import BadKey, Keyring, Principal
from service.errors import DatabaseAway, ForeignPage, Unauthorized, WrongScope

#: What probes and browsers see before they have a key. It tells nothing of what is kept here.
OPEN = frozenset({"/healthz", "/readyz", "/openapi.json", "/session"})
#: The frames of the page and their files: the same for everybody, and empty until the API fills them.
FRAMES = re.compile(r"/|/(jobs|models|datasets|flashcards|learners|compare)(/[^/]*)?|/api|/page/.*")
ADMIN = re.compile(r"/v1/keys(/.*)?|/metrics")
READING = frozenset({"GET", "HEAD", "OPTIONS"})
BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)
COOKIE = "flashcards_key"


async def authenticate(keyring: Keyring | None, scope: Scope) -> Principal:
    if keyring is None or is_open(scope["path"]):
        return Principal()
    principal = await _recognise(keyring, _presented(scope))
    needed = needed_scope(scope["method"], scope["path"])
    if needed not in principal.scopes:
        has = ", ".join(sorted(principal.scopes))
        raise WrongScope(f"this takes a key with the scope {needed}, and yours has {has}")
    if scope["path"] == "/metrics" and not principal.is_operator:
        raise WrongScope("the figures of all tenants are for whoever runs the service")
    return principal


def is_open(path: str) -> bool:
    return path in OPEN or FRAMES.fullmatch(path) is not None


def needed_scope(method: str, path: str) -> str:
    if ADMIN.fullmatch(path):
        return "admin"
    return "read" if method in READING else "write"


def key_of(headers: Headers) -> str | None:
    """The key that the page has signed in with."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value if found is not None else None


def check_own_page(headers: Headers) -> None:
    """A browser sends the cookie whoever asks it to: what changes something must come from our own page."""
    site = headers.get("sec-fetch-site")
    if site is None:  # only sent to addresses that a browser trusts, which a plain http one in a network is not
        origin = headers.get("origin")
        ours = origin is not None and urlsplit(origin).netloc == headers.get("host")
    else:
        ours = site == "same-origin"
    if not ours:
        raise ForeignPage("a key in a cookie changes things from this service's own page alone: send it as a header")


async def _own_page(request: Request) -> None:
    check_own_page(request.headers)


OwnPage = Depends(_own_page)


def _presented(scope: Scope) -> str:
    headers = Headers(scope=scope)
    header = headers.get("authorization")
    if header is not None:
        match = BEARER.fullmatch(header.strip())
        if match is None:
            raise Unauthorized("the Authorization header must read: Bearer fc_...")
        return match[1]
    key = key_of(headers)
    if key is None:
        raise Unauthorized("send your key as Authorization: Bearer fc_...")
    if scope["method"] not in READING:
        check_own_page(headers)
    return key


async def _recognise(keyring: Keyring, key: str) -> Principal:
    try:
        return await asyncio.to_thread(keyring.recognise, key)
    except BadKey as bad:
        raise Unauthorized(str(bad)) from None
    except SQLAlchemyError as error:
        raise DatabaseAway.from_error(error) from error
