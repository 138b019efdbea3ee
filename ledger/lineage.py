from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.resources import Lineage
from ledger.ancestry import imported
from ledger.names import names_of
from ledger.scope import few, find
from ledger.tables import Flashcards, Job, JobInput, Model

AT_MOST = 100
NAMED_AT_MOST = 10


def of_model(session: Session, tenant: str, model_id: str) -> Lineage:
    model = find(session, Model, tenant, model_id)
    read = select(JobInput.resource_id).where(JobInput.job_id == model.job_id).order_by(JobInput.resource_id)
    captured = few(Flashcards, tenant, Flashcards.model_id == model_id).with_only_columns(Flashcards.id)
    used = few(Job, tenant, JobInput.resource_id == model_id).with_only_columns(Job.id)
    used = used.join(JobInput, JobInput.job_id == Job.id)
    made_from = list(session.scalars(read))
    flashcards = list(session.scalars(captured.order_by(Flashcards.id.desc()).limit(AT_MOST)))
    used_by = list(session.scalars(used.order_by(Job.id.desc()).limit(AT_MOST)))
    near = [*([model.job_id] if model.job_id else []), *used_by[:NAMED_AT_MOST]]
    said = select(Job.id, Job.kind, Job.state).where(Job.tenant == tenant, Job.id.in_(near))
    jobs = {id: f"{kind} job, {state}" for id, kind, state in session.execute(said)}
    return Lineage(
        model=model_id,
        job=model.job_id,
        made_from=made_from,
        flashcards=flashcards,
        used_by=used_by,
        imported=imported(session, model_id),
        names=jobs | names_of(session, tenant, [*made_from, *flashcards[:NAMED_AT_MOST]]),
    )
