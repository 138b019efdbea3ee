"""Takes away the blobs that nothing refers to. Why that is safe while others upload: see `ledger.blobs`.

Safe in any number of processes at once: who finds a row locked goes on to the next.
"""

import re
import time
from dataclasses import dataclass

import structlog
from sqlalchemy import delete, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from ledger import landing
from ledger.blobs import is_needed
from ledger.clock import now
from ledger.db import Database
from ledger.errors import StoreAway
from ledger.store import DRAFT, Found, Store
from ledger.tables import Blob, Tenant

LOOKED_AT = 10_000  # rows a round, so that a large record costs no more than a small one
REMOVED = 1_000  # a round; the next one goes on from there
KEY = re.compile(rf"(?P<tenant>[^/]+)/(?P<digest>[0-9a-f]{{64}})(?P<draft>\.[0-9a-f]{{32}}{re.escape(DRAFT)})?")
Mark = tuple[float, str, str]
log = structlog.get_logger()


@dataclass
class Collector:
    """Goes through the blobs from the longest untouched on, some at a time, and starts over at the end."""

    db: Database
    store: Store
    grace_seconds: float
    mark: Mark | None = None

    def collect(self) -> int:
        """One round. How many blobs were taken away."""
        found, self.mark = _unneeded(self.db, self.grace_seconds, self.mark)
        if not found or not self.store.is_reachable():
            return 0
        return collect(self.db, self.store, self.grace_seconds, found)


def collect(db: Database, store: Store, grace_seconds: float, blobs: list[tuple[str, str]]) -> int:
    """Those of these (tenant, digest) that may go."""
    removed = 0
    try:
        for tenant, digest in blobs:
            removed += collect_one(db, store, grace_seconds, tenant, digest)
    except StoreAway:
        log.warning("collector.interrupted", left=len(blobs) - removed)
    if removed:
        log.info("collector.removed", blobs=removed)
    return removed


def collect_one(db: Database, store: Store, grace_seconds: float, tenant: str, digest: str) -> bool:
    this = (Blob.tenant == tenant, Blob.digest == digest)
    with db.write() as session:
        # The lock first: what is asked after it sees every reference that was made under it.
        if not session.scalar(select(Blob.digest).where(*this).with_for_update(skip_locked=True)):
            return False
        old = Blob.touched_at < now() - grace_seconds
        gone = delete(Blob).where(*this, old, ~is_needed()).returning(Blob.digest)
        if not session.execute(gone.execution_options(synchronize_session=False)).all():
            return False
        store.delete(tenant, digest)
    return True


def adopt_strays(db: Database, store: Store, grace_seconds: float) -> int:
    """Objects without a row get one, untouched since ever, and with it the way of all others; old drafts just go,
    and so does what was put into the bucket for an upload that is not on record any more.

    Only names that we could have given, and only after the grace: a younger one may be on its way to a row.
    """
    before = time.time() - grace_seconds
    found = 0
    page: list[Found] = []
    for entry in store.list():
        if entry.modified_at < before:
            page.append(entry)
        if len(page) == 1000:
            found += _adopt(db, store, page)
            page = []
    found += _adopt(db, store, page)
    if found:
        log.info("collector.strays", found=found)
    return found


def _unneeded(db: Database, grace_seconds: float, mark: Mark | None) -> tuple[list[tuple[str, str]], Mark | None]:
    """Some that may go, and where to go on from; None when the end was reached."""
    place = tuple_(Blob.touched_at, Blob.tenant, Blob.digest)
    statement = select(Blob.touched_at, Blob.tenant, Blob.digest, is_needed().label("needed"))
    statement = statement.where(Blob.touched_at < now() - grace_seconds)
    if mark is not None:
        statement = statement.where(place > mark)
    with db.read() as session:
        rows = session.execute(statement.order_by(*place.clauses).limit(LOOKED_AT)).all()
    found: list[tuple[str, str]] = []
    for touched_at, tenant, digest, needed in rows:
        if not needed:
            found.append((tenant, digest))
        if len(found) == REMOVED:
            return found, (touched_at, tenant, digest)
    last = rows[-1] if len(rows) == LOOKED_AT else None
    return found, (last[0], last[1], last[2]) if last else None


def _adopt(db: Database, store: Store, entries: list[Found]) -> int:
    found = 0
    blobs: dict[tuple[str, str], int] = {}
    found += landing.clear_strays(db, store, entries)
    for entry in entries:
        match = KEY.fullmatch(entry.key)
        if match and match["draft"]:
            store.delete_key(entry.key)
            found += 1
        elif match:
            blobs[match["tenant"], match["digest"]] = entry.size
    return found + _record(db, blobs)


def _record(db: Database, blobs: dict[tuple[str, str], int]) -> int:
    with db.read() as session:
        known = select(Blob.tenant, Blob.digest).where(Blob.digest.in_([digest for _, digest in blobs]))
        strays = blobs.keys() - {(tenant, digest) for tenant, digest in session.execute(known)}
        tenants = set(session.scalars(select(Tenant.id)))
    rows = [
        {"tenant": tenant, "digest": digest, "size": blobs[tenant, digest], "touched_at": 0.0}
        for tenant, digest in strays
        if tenant in tenants
    ]
    if rows:
        insert = (sqlite if db.is_sqlite else postgresql).insert
        with db.write() as session:
            session.execute(insert(Blob).on_conflict_do_nothing(), rows)
    return len(rows)
