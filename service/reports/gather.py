"""A report is read from the record when it is asked for: it is as true as the record, and shows no more than is kept.

So every job that has ended has one, however it ended, and pictures of data that was deleted are gone from it too.
"""

import re

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.reports import Report
from flashcards.contract.resources import TERMINAL_STATES
from ledger import artifacts, events, jobs
from ledger.errors import Conflict
from ledger.tables import Dataset, Event, Flashcards, Job, Learner, Model
from service import views

ID = re.compile(r"\b(model|dataset|flashcards|learner)_[0-9a-f]{32}\b")
NAMED: dict[str, type[Model] | type[Dataset] | type[Flashcards] | type[Learner]] = {
    "model": Model,
    "dataset": Dataset,
    "flashcards": Flashcards,
    "learner": Learner,
}
TOLD = ("state", "note", "resume_point")


def gather(session: Session, tenant: str, job_id: str) -> Report:
    row = jobs.find(session, tenant, job_id)
    if row.state not in TERMINAL_STATES:
        raise Conflict(f"the job is {row.state}: it has a report once it has ended")
    job = views.job(row, None, jobs.attempts_of(session, job_id), artifacts.products_of(session, job_id))
    return Report(
        job=job,
        names=_names(session, tenant, job.model_dump_json(include={"spec", "result"})),
        metrics=views.metrics(jobs.metrics_of(session, job_id)).metrics,
        history=[views.event(each) for each in _history(session, row)],
    )


def _history(session: Session, row: Job) -> list[Event]:
    found = [event for kind in TOLD for event in events.of_kind(session, row.id, kind)]
    return sorted(found, key=lambda event: event.seq)


def _names(session: Session, tenant: str, text: str) -> dict[str, str]:
    """Of what is still there and has a name; a comparison may name hundreds."""
    names: dict[str, str] = {}
    for kind, table in NAMED.items():
        ids = sorted({found[0] for found in ID.finditer(text) if found[1] == kind})
        if ids:
            owned = select(table.id, table.name).where(table.tenant == tenant, table.id.in_(ids))
            names |= {id: name for id, name in session.execute(owned) if name}
    return names
