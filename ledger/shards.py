"""A large capture: its first step decides what all cards have in common, shards make them, its last step joins those.

In between it waits, as a comparison does (`ledger.parents`). A shard is a job like any other: whoever dies with it, it
alone is done again. What it made is its artifact, until the set is whole.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.resources import Progress
from flashcards.contract.shards import Shard, Split
from flashcards.contract.specs import MAX_SHARDS, CaptureSpec, ShardSpec
from ledger import artifacts, blobs, jobs, lifecycle, parents, quota, workers
from ledger.admission import Admitted
from ledger.db import Database
from ledger.lifecycle import Claim
from ledger.tables import Attempt, Job


def ways(db: Database, claim: Claim, spec: CaptureSpec) -> int:
    """How many shards it may become: as many as asked for, else one for this worker and each that has nothing to do."""
    if spec.shards == 1:
        return 1
    with db.read() as session:
        job = session.get_one(Job, claim.job_id)
        left = quota.jobs_left(session, claim.tenant, job.key_id)
    asked = 1 + workers.idle(db).get(job.queue, 0) if spec.shards == "auto" else spec.shards
    return min(asked, MAX_SHARDS, asked if left is None else left)


def split(session: Session, claim: Claim, asked: Split) -> bool:
    """In the caller's transaction: the capture waits, its shards are queued. False: as in `lifecycle.settle`."""
    if not lifecycle.wait(session, claim, f"split into {len(asked.shards)} shards"):
        return lifecycle.settle(session, claim, "cancelled", reason="cancelled by the user")
    job = session.get_one(Job, claim.job_id, populate_existing=True)
    count = asked.recipe.count
    job.progress = Progress(steps=count, unit="cards").model_dump(mode="json", exclude_none=True)
    for shard in asked.shards:
        jobs.create(session, job.tenant, _spec(job, asked, shard), Admitted(job.queue, []), job.key_id, job.id)
    return True


def forget_parts(session: Session, claim: Claim) -> None:
    """The set is whole, and on record."""
    for child in parents.children(session, claim.job_id):
        blobs.let_go(session, claim.tenant, artifacts.forget_products(session, child.id))


def seconds(session: Session, parent_id: str) -> float:
    """While at least one shard was being made: whether they ran beside each other or not, and without the pauses."""
    made = select(Attempt.started_at, Attempt.ended_at).join(Job, Job.id == Attempt.job_id)
    spans = session.execute(made.where(Job.parent_id == parent_id)).all()
    total = reached = 0.0
    for began, ended in sorted((began, ended) for began, ended in spans if ended is not None):
        total += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return total


def _spec(job: Job, asked: Split, shard: Shard) -> ShardSpec:
    """The capture's labels are not its shards': who looks for them wants the whole."""
    capture = CaptureSpec.model_validate(job.spec)
    return ShardSpec(
        kind="shard",
        model=capture.model,
        recipe=asked.recipe,
        first=shard.first,
        count=shard.count,
        device=capture.device,
        timeout_seconds=capture.timeout_seconds,
        max_attempts=capture.max_attempts,
    )
