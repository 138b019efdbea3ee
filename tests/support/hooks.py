"""Webhooks and what they were told, straight from the record."""

from sqlalchemy import select

from flashcards.contract.webhooks import NewWebhook
from ledger import webhooks
from ledger.db import Database
from ledger.steps import TERMINAL
from ledger.tables import DEFAULT_TENANT, Delivery, Event, Job, Webhook

EVERYTHING = ["job.succeeded", "job.failed", "job.cancelled", "learner.version.created", "learner.budget.broken"]


def add_webhook(
    db: Database, url: str = "https://hooks.example/", events: list[str] = EVERYTHING, tenant=DEFAULT_TENANT, **fields
) -> tuple[Webhook, str]:
    """And its secret."""
    with db.write() as session:
        return webhooks.create(session, tenant, NewWebhook(url=url, events=events, **fields), "")


def told(db: Database, webhook_id: str | None = None) -> list[Delivery]:
    statement = select(Delivery).order_by(Delivery.id)
    if webhook_id is not None:
        statement = statement.where(Delivery.webhook_id == webhook_id)
    with db.read() as session:
        return list(session.scalars(statement))


def ends(db: Database) -> list[tuple[str, str]]:
    """Every end of every job, as its history has it: one that was retried may have more."""
    with db.read() as session:
        states = session.execute(select(Event.job_id, Event.data).join(Job).where(Event.kind == "state")).all()
    return [(job_id, data["state"]) for job_id, data in states if data["state"] in TERMINAL]
