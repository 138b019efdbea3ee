"""How much a key may add. Both quotas look at what its tenant has; where a key says none, there is none."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ledger import blobs
from ledger.clock import now
from ledger.errors import NoRoom, TooManyJobs
from ledger.keys import Principal
from ledger.steps import UNFINISHED
from ledger.tables import ApiKey, Blob, Job, Tenant, Upload


def check_jobs(session: Session, principal: Principal, more: int = 1) -> None:
    most = principal.max_unfinished_jobs
    if most is None:
        return
    _one_at_a_time(session, principal.tenant)
    count = _unfinished(session, principal.tenant)
    if count + more > most:
        come = "" if more == 1 else f", this makes {more} more"
        raise TooManyJobs(
            f"{count} jobs are queued or running{come}, and this key may bring them to {most}: wait for some"
        )


def jobs_left(session: Session, tenant: str, key_id: str | None) -> int | None:
    """How many more this key may have unfinished; None: as many as it likes."""
    most = None if key_id is None else session.scalar(select(ApiKey.max_unfinished_jobs).where(ApiKey.id == key_id))
    return None if most is None else max(0, most - _unfinished(session, tenant))


def check_room(session: Session, principal: Principal, size: int = 0) -> None:
    """With what is on record, what uploads were begun for, and `size` more bytes to come.

    What waits to be collected is not counted, nor are the parts of an upload: it counts as a whole from its beginning.
    """
    most = principal.max_stored_bytes
    if most is None:
        return
    _one_at_a_time(session, principal.tenant)
    kept = select(func.sum(Blob.size)).where(Blob.tenant == principal.tenant, blobs.is_needed(blobs.ARRIVED))
    open_ones = (Upload.tenant == principal.tenant, Upload.answer.is_(None), Upload.expires_at > now())
    begun = select(func.sum(Upload.size)).where(*open_ones)
    stored = int(session.scalar(kept) or 0) + int(session.scalar(begun) or 0)
    if stored + size > most:
        raise NoRoom(
            f"that would make {stored + size:,} bytes, and this key may bring what is kept to {most:,}. "
            "GET /v1/storage says what is kept: delete some of it"
        )


def _unfinished(session: Session, tenant: str) -> int:
    return session.scalar(select(func.count()).where(Job.tenant == tenant, Job.state.in_(UNFINISHED))) or 0


def _one_at_a_time(session: Session, tenant: str) -> None:
    """Two that count at once would both find room for the last one. (SQLite has one writer anyway.)"""
    session.execute(select(Tenant.id).where(Tenant.id == tenant).with_for_update())
