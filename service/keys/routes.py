from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import select

from flashcards.contract import tokens
from flashcards.contract.keys import Key, KeyId, MadeKey, NewKey, TenantName
from flashcards.contract.resources import Page
from ledger import keys, paging
from ledger.clock import now
from ledger.errors import Conflict
from ledger.keys import Keyring, Principal
from ledger.tables import ApiKey
from service import views
from service.deps import House, HouseDep, IdempotencyKey, PrincipalDep
from service.errors import Invalid, WrongScope
from service.idempotency import fingerprint, once
from service.paging import Cursor, Limit, decode_cursor

router = APIRouter(prefix="/v1/keys", tags=["keys"])


@router.post("", status_code=201, response_model=MadeKey)
def create_key(
    asked: NewKey, request: Request, house: HouseDep, principal: PrincipalDep, idempotency_key: IdempotencyKey = None
) -> Response:
    """Make a key. This answer is the only place where it can be read."""
    keyring = _keyring(house)
    tenant = _tenant(principal, asked.tenant)
    mark = fingerprint("POST", request.url.path, asked.model_dump_json())
    with once(house.db, principal.tenant, idempotency_key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        token = tokens.new_token()
        with house.db.write() as session:
            expires_at = asked.expires_at.timestamp() if asked.expires_at else None
            if expires_at is not None and expires_at <= (session.scalar(select(now())) or 0):
                raise Invalid("body.expires_at", "this moment has passed already")
            values = asked.model_dump(exclude={"tenant", "expires_at", "scopes"})
            scopes = sorted(set(asked.scopes), key=keys.SCOPES.index)
            row = keyring.add(session, tenant, token, expires_at=expires_at, scopes=scopes, **values)
            location = f"/v1/keys/{row.id}"
            # What a replay answers with is stored, and the key must not be.
            attempt.keep(session, mark, 201, _made(row, None).model_dump_json(), location)
            answer = _made(row, token).model_dump_json()
    return Response(answer, 201, {"Location": location, "Cache-Control": "no-store"}, "application/json")


@router.get("")
def list_keys(
    house: HouseDep,
    principal: PrincipalDep,
    tenant: Annotated[TenantName | None, Query(description="the operator may look at others")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Key]:
    """Revoked ones among them; their keys themselves are nowhere."""
    before = decode_cursor(cursor, "key")
    theirs = select(ApiKey).where(ApiKey.tenant == _tenant(principal, tenant))
    with house.db.read() as session:
        rows, last = paging.page(session, theirs, ApiKey.id, limit, before)
        return views.page([views.key(row) for row in rows], last)


@router.get("/{key_id}")
def get_key(key_id: KeyId, house: HouseDep, principal: PrincipalDep) -> Key:
    with house.db.read() as session:
        return views.key(keys.find(session, _sees(principal), key_id))


@router.delete("/{key_id}", status_code=204)
def revoke_key(key_id: KeyId, house: HouseDep, principal: PrincipalDep) -> None:
    """From the next request on it opens nothing. It stays in the list, and cannot be brought back."""
    with house.db.write() as session:
        row = keys.find(session, _sees(principal), key_id)
        if row.id == principal.key_id:
            raise Conflict("this is the key that you ask with: revoke it with another one")
        keys.revoke(session, row)


def _keyring(house: House) -> Keyring:
    if house.keyring is None:
        raise Conflict("this service runs without keys: start it with FLASHCARDS_ADMIN_KEY_FILE")
    return house.keyring


def _tenant(principal: Principal, asked: str | None) -> str:
    if asked is None or asked == principal.tenant:
        return principal.tenant
    if not principal.is_operator:
        raise WrongScope("keys of other tenants are for whoever runs the service")
    return asked


def _sees(principal: Principal) -> str | None:
    return None if principal.is_operator else principal.tenant


def _made(row: ApiKey, token: str | None) -> MadeKey:
    return MadeKey(**dict(views.key(row)), key=token)
