"""How a job comes into the queue, by whichever door: checked, counted, and on record."""

from sqlalchemy.orm import Session

from flashcards.contract.specs import CaptureSpec, CompareSpec, JobSpec
from ledger import admission, compare, jobs, parents, quota
from ledger.doorbell import Bell
from ledger.keys import Principal
from ledger.lifecycle import Caller
from ledger.settings import Settings
from ledger.tables import Job


def queue(session: Session, settings: Settings, principal: Principal, spec: JobSpec, caller: Caller = Caller()) -> Job:
    """In the caller's transaction. Raises LedgerError in words."""
    admitted = admission.admit(session, settings, principal.tenant, spec, principal.retain_data)
    quota.check_jobs(session, principal, 1 + _children(spec))
    if isinstance(spec, CompareSpec):
        return compare.create(session, principal.tenant, spec, admitted, principal.key_id, caller)
    return jobs.create(session, principal.tenant, spec, admitted, principal.key_id, caller=caller)


def _children(spec: JobSpec) -> int:
    """That it will have for sure. A capture that decides for itself stays within the quota."""
    if isinstance(spec, CompareSpec):
        return spec.tasks
    return spec.shards if isinstance(spec, CaptureSpec) and isinstance(spec.shards, int) and spec.shards > 1 else 0


def to_ring_for(session: Session, job: Job) -> list[tuple[str, str]]:
    """The job and its queue, or the children that it waits for."""
    if job.state != "waiting":
        return [(job.id, job.queue)]
    return parents.to_ring_for(session, job.id, Bell.AT_ONCE)
