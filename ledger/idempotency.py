"""Answers by `Idempotency-Key`: the same request again gets the same answer, and nothing is done twice.

The first request reserves the key; its answer is written in the transaction that does the work. A holder that dies
lets its lock lapse, and the next request with the key starts afresh; should the holder live after all, its work is
undone with its transaction, because the key is no longer its own.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ledger.clock import now
from ledger.db import Database
from ledger.tables import Idempotency

LOCK_SECONDS = 10
LONG_LOCK_SECONDS = 60


@dataclass(frozen=True)
class Answer:
    fingerprint: str
    status: int
    location: str | None
    body: str


class InFlight(Exception):
    """A twin with the same key is being answered right now."""


def reserve(db: Database, tenant: str, key: str, holder: str, seconds: float = LOCK_SECONDS) -> Answer | None:
    """The answer given before, or None: the key is now the caller's."""
    with db.write() as session:
        row = {"tenant": tenant, "key": key, "holder": holder, "locked_until": now() + seconds}
        insert = (sqlite if db.is_sqlite else postgresql).insert
        if session.execute(insert(Idempotency).values(row).on_conflict_do_nothing().returning(Idempotency.key)).all():
            return None
        stored = session.execute(select(Idempotency).where(*_is(tenant, key))).scalar_one()
        if stored.status is not None:
            return Answer(stored.fingerprint or "", stored.status, stored.location, stored.body or "")
        # A lock from the future was set before the clock was put back.
        from_the_future = Idempotency.locked_until > now() + 2 * LONG_LOCK_SECONDS
        lapsed = update(Idempotency).where(*_is(tenant, key), (Idempotency.locked_until < now()) | from_the_future)
        if session.execute(lapsed.values(holder=holder, locked_until=now() + seconds)).rowcount == 1:  # type: ignore[attr-defined]
            return None
        raise InFlight


def hold_on(db: Database, tenant: str, key: str, holder: str) -> None:
    """A long upload keeps its key locked."""
    with db.write() as session:
        lock = update(Idempotency).where(*_is(tenant, key), Idempotency.holder == holder)
        session.execute(lock.values(locked_until=now() + LONG_LOCK_SECONDS))


def answer(session: Session, tenant: str, key: str, holder: str, given: Answer) -> None:
    """Raises InFlight where another request took the key over meanwhile: what was done must then not be kept."""
    kept = (
        update(Idempotency)
        .where(*_is(tenant, key), Idempotency.holder == holder)
        .values(fingerprint=given.fingerprint, status=given.status, location=given.location, body=given.body)
    )
    if session.execute(kept).rowcount != 1:  # type: ignore[attr-defined]
        raise InFlight


def give_up(db: Database, tenant: str, key: str, holder: str) -> None:
    """The request failed: the key is free for another try."""
    with db.write() as session:
        unanswered = (Idempotency.holder == holder, Idempotency.status.is_(None))
        session.execute(delete(Idempotency).where(*_is(tenant, key), *unanswered))


def forget(db: Database, after_hours: float) -> None:
    with db.write() as session:
        old = Idempotency.created_at < now() - after_hours * 3600
        settled = or_(Idempotency.status.is_not(None), Idempotency.locked_until < now())
        session.execute(delete(Idempotency).where(old, settled))


def _is(tenant: str, key: str) -> tuple[ColumnElement[bool], ...]:
    return (Idempotency.tenant == tenant, Idempotency.key == key)
