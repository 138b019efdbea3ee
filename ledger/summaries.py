from flashcards.contract.resources import JobSummary
from ledger.clock import as_datetime, maybe_datetime
from ledger.tables import Job


def job_summary(row: Job) -> JobSummary:
    """A job as lists and announcements show it."""
    return JobSummary(
        id=row.id,
        kind=row.kind,
        parent=row.parent_id,
        state=row.state,
        labels=row.labels,
        progress=row.progress,
        error=row.error,
        result=row.result,
        cancel_requested=row.cancel_requested_at is not None,
        created_at=as_datetime(row.created_at),
        started_at=maybe_datetime(row.started_at),
        ended_at=maybe_datetime(row.ended_at),
    )
