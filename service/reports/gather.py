"""A report is read from the record when it is asked for: it is as true as the record, and shows no more than is kept.

So every job that has ended has one, however it ended, and pictures of data that was deleted are gone from it too.
"""

import re

from sqlalchemy.orm import Session

from flashcards.contract.reports import Report
from flashcards.contract.resources import TERMINAL_STATES
from ledger import artifacts, events, jobs
from ledger.errors import Conflict
from ledger.names import names_of
from ledger.tables import Event, Job
from service import views

ID = re.compile(r"\b(?:model|dataset|flashcards|learner)_[0-9a-f]{32}\b")
TOLD = ("state", "note", "warning", "resume_point")


def gather(session: Session, tenant: str, job_id: str) -> Report:
    row = jobs.find(session, tenant, job_id)
    if row.state not in TERMINAL_STATES:
        raise Conflict(f"the job is {row.state}: it has a report once it has ended")
    job = views.job(row, None, jobs.attempts_of(session, job_id), artifacts.products_of(session, job_id))
    return Report(
        job=job,
        names=names_of(session, tenant, ID.findall(job.model_dump_json(include={"spec", "result"}))),
        metrics=views.metrics(jobs.metrics_of(session, job_id)).metrics,
        history=[views.event(each) for each in _history(session, row)],
    )


def _history(session: Session, row: Job) -> list[Event]:
    found = [event for kind in TOLD for event in events.of_kind(session, row.id, kind)]
    return sorted(found, key=lambda event: event.seq)
