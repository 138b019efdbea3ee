"""Signing in with a key: the browser keeps it in a cookie that no script can read and no other site can send."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from flashcards.contract.base import Record
from ledger.keys import BadKey, Principal
from service.auth import COOKIE, OwnPage, key_of
from service.deps import HouseDep
from service.errors import Unauthorized

router = APIRouter(prefix="/session", include_in_schema=False)


class SignIn(Record):
    key: Annotated[str, Field(min_length=1, max_length=500)]


class Session(Record):
    """What the page says of whoever looks at it. Without keys everybody at this machine may do everything."""

    locked: bool
    signed_in: bool
    tenant: str | None = None
    scopes: list[str] = []
    reason: str | None = None


@router.get("")
async def get_session(request: Request, house: HouseDep) -> Session:
    if house.keyring is None:
        return _seen(Principal(), locked=False)
    key = key_of(request.headers)
    if key is None:
        return Session(locked=True, signed_in=False)
    try:
        return _seen(await asyncio.to_thread(house.keyring.recognise, key), locked=True)
    except BadKey as bad:
        return Session(locked=True, signed_in=False, reason=str(bad))


@router.post("", dependencies=[OwnPage])
async def sign_in(body: SignIn, request: Request, response: Response, house: HouseDep) -> Session:
    if house.keyring is None:
        return _seen(Principal(), locked=False)
    key = body.key.strip()
    try:
        principal = await asyncio.to_thread(house.keyring.recognise, key)
    except BadKey as bad:
        raise Unauthorized(str(bad)) from None
    # Without an end of its own: it goes with the browser's session, or by signing out.
    response.set_cookie(COOKIE, key, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return _seen(principal, locked=True)


@router.delete("", status_code=204, dependencies=[OwnPage])
async def sign_out(response: Response) -> None:
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def _seen(principal: Principal, *, locked: bool) -> Session:
    return Session(locked=locked, signed_in=True, tenant=principal.tenant, scopes=sorted(principal.scopes))
