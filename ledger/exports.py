"""The files that a model was exported as, found by the jobs that made them."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from ledger.errors import Conflict
from ledger.scope import few, find
from ledger.tables import Artifact, Job, JobInput, Model

FILES = {"onnx": "model.onnx"}


def newest(session: Session, tenant: str, model_id: str, format: str) -> Artifact:
    """The model has to be there; where it was never exported, the answer says what would do it."""
    find(session, Model, tenant, model_id)
    reads = few(Job, tenant, JobInput.resource_id == model_id).with_only_columns(Job.id)
    done = reads.join(JobInput, JobInput.job_id == Job.id).where(Job.kind == "export", Job.state == "succeeded")
    mine = select(Artifact).where(Artifact.job_id.in_(done), Artifact.name == FILES[format])
    artifact = session.scalar(mine.order_by(Artifact.job_id.desc()).limit(1))
    if artifact is None:
        how = f'{{"kind": "export", "model": "{model_id}", "format": "{format}"}}'
        raise Conflict(f"this model was not exported yet; POST /v1/jobs makes the file: {how}")
    return artifact
