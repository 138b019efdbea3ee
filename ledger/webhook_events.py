"""What webhooks are told of a job that has ended: rows in the transaction that ends it, so that none is forgotten.

`ledger.steps.move` asks for them, which is the one way to an end. A courier takes them from there.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from flashcards.contract.webhooks import EventData, EventType, JobLinks
from ledger.ids import new_id
from ledger.tables import Delivery, Job, Webhook

INSERT = insert(Delivery.__table__)  # type: ignore[arg-type]
BUDGET_BROKEN = "forgot-too-much"  # type of the failure of a task that forgot more than its budget allows
#: Which field of a result names what a job of this kind has made.
MADE = {"train": "model", "distill": "model", "capture": "flashcards"}


def write(session: Session, job: Job) -> None:
    hooks = _webhooks(session, job)
    if not hooks:
        return
    told = list(_events(job))
    if rows := [_row(hook, type, job, data) for hook in hooks for type, data in told if type in hook.events]:
        session.connection().execute(INSERT, rows)


def _webhooks(session: Session, job: Job) -> list[Webhook]:
    """Those of its tenant that want jobs with such labels. Held, because one deleted meanwhile would spoil the end."""
    theirs = select(Webhook).where(Webhook.tenant == job.tenant).order_by(Webhook.id)
    found = session.scalars(theirs.with_for_update(read=True, key_share=True))
    return [hook for hook in found if hook.labels.items() <= job.labels.items()]


def _events(job: Job) -> Iterator[tuple[EventType, dict[str, Any]]]:
    data = _data(job).model_dump(mode="json", exclude_none=True)
    match job.state:
        case "succeeded":
            yield "job.succeeded", data
            if "version" in data:
                yield "learner.version.created", data
        case "failed":
            yield "job.failed", data
            if (job.error or {}).get("type") == BUDGET_BROKEN:
                yield "learner.budget.broken", data
        case "cancelled":
            yield "job.cancelled", data


def _data(job: Job) -> EventData:
    result, error = job.result or {}, job.error
    version = result.get("version") if job.kind == "learn" else None
    made = MADE.get(job.kind)
    return EventData(
        job=job.id,
        kind=job.kind,
        state=job.state,
        labels=job.labels,
        parent=job.parent_id,
        learner=job.learner_id,
        version=version,
        made={made: result[made]} if made is not None and result.get(made) else {},
        error=error and {name: error[name] for name in ("type", "title") if name in error},
        links=_links(job, version),
    )


def _links(job: Job, version: int | None) -> JobLinks:
    at, learner = f"/v1/jobs/{job.id}", job.learner_id and f"/v1/learners/{job.learner_id}"
    return JobLinks(
        job=at,
        report=f"{at}/report.json",
        learner=learner,
        version=f"{learner}/versions/{version}" if version is not None else None,
    )


def _row(hook: Webhook, type: EventType, job: Job, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": new_id("delivery"),
        "tenant": hook.tenant,
        "webhook_id": hook.id,
        "type": type,
        "job_id": job.id,
        "learner_id": job.learner_id,
        "data": data,
    }
