"""Large files on their way in, part by part. What was acknowledged is in the store, whoever dies.

An upload is a row that says how large the file is and what its SHA-256 will be; a part is a blob like any other, and a
row that refers to it (`ledger.blobs`). So parts may come to any API, in any order, twice, and at once. Put together and
found good, the file becomes a model, a dataset or what a bundle holds; in that transaction the parts are let go, and
the answer is kept, for those who did not hear it.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import structlog
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from ledger import blobs, landing, quota
from ledger.clock import now
from ledger.db import Database
from ledger.errors import Complete, NotFound, StoreAway
from ledger.ids import new_id
from ledger.keys import Principal
from ledger.settings import Settings
from ledger.store import Kept, Store
from ledger.tables import Upload, UploadPart

#: Parts grow with the file, so that there are never more than this.
PARTS = 1_000
AT_ONCE = 1_000
log = structlog.get_logger()


@dataclass(frozen=True)
class Answer:
    """`mark` tells the request that it was given to from others."""

    mark: str
    status: int
    location: str
    body: str


class Answered(Exception):
    """The upload became something before; this is what was said then."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.location)
        self.answer = answer


def begin(session: Session, settings: Settings, principal: Principal, digest: str, size: int) -> tuple[Upload, bool]:
    """A new one, or the one that was begun for the same file and not brought to its end: the second is False then."""
    same = (Upload.tenant == principal.tenant, Upload.digest == digest, Upload.size == size)
    statement = select(Upload).where(*same, Upload.answer.is_(None), is_there()).order_by(Upload.id.desc()).limit(1)
    if (row := session.scalar(statement.with_for_update())) is not None:
        prolong(session, settings, row)
        return row, False
    quota.check_room(session, principal, size)
    part_size = max(settings.upload_part_bytes, -(-size // PARTS))
    row = Upload(id=new_id("upload"), tenant=principal.tenant, digest=digest, size=size, part_size=part_size)
    session.add(row)
    prolong(session, settings, row)
    return row, True


def find(session: Session, tenant: str, upload_id: str, *, lock: bool = False) -> Upload:
    """One whose time is over is not there any more, whether or not it was taken away yet."""
    statement = select(Upload).where(Upload.tenant == tenant, Upload.id == upload_id, is_there())
    row = session.scalar(statement.with_for_update() if lock else statement)
    if row is None:
        raise NotFound("upload", upload_id)
    return row


def find_open(session: Session, tenant: str, upload_id: str, *, lock: bool = False) -> Upload:
    row = find(session, tenant, upload_id, lock=lock)
    if row.answer is not None:
        raise Complete(f"it has become {row.answer['location']}, and takes no part any more: begin another")
    return row


def prolong(session: Session, settings: Settings, row: Upload) -> None:
    row.expires_at = now() + settings.upload_hours * 3600
    session.flush()


def count(row: Upload) -> int:
    return -(-row.size // row.part_size)


def size_of(row: Upload, number: int) -> int:
    """All are of one size, and the last has what is left."""
    return min(row.part_size, row.size - (number - 1) * row.part_size)


def take_part(session: Session, settings: Settings, tenant: str, upload_id: str, number: int, kept: Kept) -> None:
    """The last one wins: of two that differ at least one is wrong, and the digest of the whole file says which."""
    row = find_open(session, tenant, upload_id, lock=True)
    before = session.get(UploadPart, (upload_id, number))
    if before is None:
        session.add(UploadPart(upload_id=upload_id, number=number, tenant=tenant, digest=kept.digest, size=kept.size))
    elif before.digest != kept.digest:
        gone, before.digest = before.digest, kept.digest
        blobs.let_go(session, tenant, [gone], at_once=True)
    prolong(session, settings, row)


def parts_of(session: Session, upload_ids: Iterable[str]) -> dict[str, dict[int, Kept]]:
    found: dict[str, dict[int, Kept]] = {upload_id: {} for upload_id in upload_ids}
    for part in session.scalars(select(UploadPart).where(UploadPart.upload_id.in_(found))):
        found[part.upload_id][part.number] = Kept(part.digest, part.size)
    return found


def missing(store: Store, row: Upload, parts: dict[int, Kept]) -> list[int]:
    """What was put straight into the bucket counts if it is as long as it must be; more is not known of it yet."""
    left = [number for number in range(1, count(row) + 1) if number not in parts]
    if not (row.linked and left and row.answer is None):
        return left if row.answer is None else []
    landed = landing.sizes(store, row.tenant, row.id)
    return [number for number in left if landed.get(number) != size_of(row, number)]


def answered(row: Upload) -> Answer | None:
    return None if row.answer is None else Answer(**row.answer)


def close(session: Session, settings: Settings, tenant: str, upload_id: str, answer: Answer) -> None:
    """In the transaction that makes something of it. Raises Answered where a twin was faster."""
    row = find(session, tenant, upload_id, lock=True)
    if (given := answered(row)) is not None:
        raise Answered(given)
    row.answer = asdict(answer)
    row.expires_at = now() + settings.idempotency_hours * 3600
    _let_parts_go(session, row)


def clear_landed(db: Database, store: Store, tenant: str, upload_id: str) -> None:
    """What was put into the bucket is of no use any more. What stays behind here goes with the row."""
    with db.read() as session:
        linked = session.scalar(select(Upload.linked).where(Upload.tenant == tenant, Upload.id == upload_id))
    if linked:
        with suppress(StoreAway):
            landing.clear(store, tenant, upload_id)


def discard(session: Session, row: Upload) -> None:
    _let_parts_go(session, row)
    session.delete(row)
    session.flush()


def forget(db: Database, store: Store) -> int:
    """Those whose time is over. What was put into the bucket goes first, so that a kill leaves the row to try again."""
    gone = 0
    for upload_id in _over(db):
        with db.write() as session:
            row = session.scalar(select(Upload).where(Upload.id == upload_id, ~is_there()).with_for_update())
            if row is None:
                continue
            try:
                if row.linked:
                    landing.clear(store, row.tenant, row.id)
            except StoreAway:
                continue
            discard(session, row)
            gone += 1
    if gone:
        log.info("uploads.forgotten", count=gone)
    return gone


def _over(db: Database) -> Sequence[str]:
    with db.read() as session:
        return session.scalars(select(Upload.id).where(~is_there()).limit(AT_ONCE)).all()


def _let_parts_go(session: Session, row: Upload) -> None:
    """Nobody asks for a part again: it may go at once."""
    parts = session.scalars(select(UploadPart).where(UploadPart.upload_id == row.id)).all()
    for part in parts:
        session.delete(part)
    session.flush()
    blobs.let_go(session, row.tenant, [part.digest for part in parts], at_once=True)


def is_there() -> ColumnElement[bool]:
    return Upload.expires_at > now()
