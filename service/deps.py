"""What routes ask for by type."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Query, Request
from prometheus_client import CollectorRegistry

from ledger.db import Database
from ledger.doorbell import Bell
from ledger.keys import Keyring, Principal
from ledger.settings import Settings
from ledger.store import Store
from service.rates import Rates
from service.watch import Watch


@dataclass(frozen=True)
class House:
    """What one API process has."""

    settings: Settings
    db: Database
    store: Store
    doorbell: Bell
    watch: Watch
    checks: asyncio.Semaphore
    keyring: Keyring | None
    rates: Rates
    figures: CollectorRegistry


# Coroutines, because FastAPI sends plain functions through its thread pool, and there is nothing to wait for here.
async def _house(request: Request) -> House:
    house: House = request.app.state.house
    return house


async def _principal(request: Request) -> Principal:
    """The door has seen the key already."""
    principal: Principal = request.scope["principal"]
    return principal


async def _tenant(request: Request) -> str:
    return (await _principal(request)).tenant


HouseDep = Annotated[House, Depends(_house)]
PrincipalDep = Annotated[Principal, Depends(_principal)]
TenantDep = Annotated[str, Depends(_tenant)]
ValidateOnly = Annotated[bool, Query(description="check everything, queue nothing")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="send the same request again with the same key and it is done once",
    ),
]
