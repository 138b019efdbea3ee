"""`Idempotency-Key` at the door: reserve it, do the work once, keep the answer with the work."""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from fastapi import Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from uuid_utils import uuid4

from ledger import idempotency
from ledger.db import Database
from ledger.idempotency import Answer, InFlight
from service.errors import OtherBody, TwinInFlight

HOLD_ON_SECONDS = 20
Done = TypeVar("Done")


class Once:
    """One request under its key; without a key everything here does nothing."""

    def __init__(
        self, db: Database, tenant: str, key: str | None, lock_seconds: float = idempotency.LONG_LOCK_SECONDS
    ) -> None:
        self._lock_seconds = lock_seconds
        self._db = db
        self._tenant = tenant
        self._key = key
        self._holder = uuid4().hex
        self._before: Answer | None = None

    def reserve(self) -> None:
        if self._key is None:
            return
        try:
            self._before = idempotency.reserve(self._db, self._tenant, self._key, self._holder, self._lock_seconds)
        except InFlight:
            raise _twin_in_flight() from None

    def hold_on(self) -> None:
        if self._key is not None and self._before is None:
            idempotency.hold_on(self._db, self._tenant, self._key, self._holder)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """While something takes long that is not on the event loop."""
        done = threading.Event()

        def keep_holding() -> None:
            while not done.wait(HOLD_ON_SECONDS):
                with suppress(DBAPIError):
                    self.hold_on()

        thread = threading.Thread(target=keep_holding, name="idempotency", daemon=True)
        if self._key is not None:
            thread.start()
        try:
            yield
        finally:
            done.set()

    def answered_before(self, fingerprint: str) -> Response | None:
        if self._before is None:
            return None
        if self._before.fingerprint != fingerprint:
            raise OtherBody("the same key came before with another route, query or body; take a new key")
        return respond(self._before.status, self._before.body, self._before.location, replayed=True)

    def keep(self, session: Session, fingerprint: str, status: int, body: str, location: str | None) -> Response:
        """In the transaction that does the work: either both are there or neither."""
        if self._key is not None:
            given = Answer(fingerprint, status, location, body)
            try:
                idempotency.answer(session, self._tenant, self._key, self._holder, given)
            except InFlight:
                raise _twin_in_flight() from None
        return respond(status, body, location)

    def give_up(self) -> None:
        if self._key is not None and self._before is None:
            idempotency.give_up(self._db, self._tenant, self._key, self._holder)


@contextmanager
def once(db: Database, tenant: str, key: str | None) -> Iterator[Once]:
    """For routes that answer at once. Uploads reserve, hold on and give up from the event loop themselves."""
    attempt = Once(db, tenant, key, idempotency.LOCK_SECONDS)
    attempt.reserve()
    try:
        yield attempt
    except BaseException:
        attempt.give_up()
        raise


async def patiently(work: Callable[[], Done], hold_on: Callable[[], None]) -> Done:
    """A large file takes a while to fetch, and the key is ours all that time."""
    working = asyncio.create_task(asyncio.to_thread(work))
    while not (await asyncio.wait({working}, timeout=HOLD_ON_SECONDS))[0]:
        await asyncio.to_thread(hold_on)
    return working.result()


def _twin_in_flight() -> TwinInFlight:
    return TwinInFlight("wait for its answer, then ask again", headers={"Retry-After": "1"})


def fingerprint(*parts: str) -> str:
    """What makes two requests the same request."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def respond(status: int, body: str, location: str | None, *, replayed: bool = False) -> Response:
    headers = {"Location": location} if location else {}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return Response(body, status, headers, "application/json")
