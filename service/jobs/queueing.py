"""How a job comes into the queue, by whichever route (and by the broker: `ledger.queueing`)."""

from fastapi import Request, Response

from flashcards.contract.resources import Validated
from flashcards.contract.specs import JobSpec
from ledger import admission, queueing, tables, turns
from ledger.keys import Principal
from ledger.lifecycle import Caller
from service import views
from service.deps import House
from service.idempotency import fingerprint, once


def validate(house: House, principal: Principal, spec: JobSpec) -> Response:
    with house.db.read() as session:
        admitted = admission.admit(session, house.settings, principal.tenant, spec, principal.retain_data)
    return Response(Validated(spec=spec, queue=admitted.queue).model_dump_json(), 200, None, "application/json")


def enqueue(request: Request, house: House, principal: Principal, key: str | None, spec: JobSpec) -> Response:
    """The answer is given once it is on record; a worker takes it from there."""
    caller = Caller(request.scope["request_id"], request.scope["trace"])
    mark = fingerprint("POST", request.url.path, request.url.query, spec.model_dump_json()) if key else ""
    with once(house.db, principal.tenant, key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        with house.db.write() as session:
            row = queueing.queue(session, house.settings, principal, spec, caller)
            answer = views.job(row, None).model_dump_json()
            response = attempt.keep(session, mark, 202, answer, f"/v1/jobs/{row.id}")
    request.scope["job_id"] = row.id
    ring(house, row)
    return response


def ring(house: House, job: tables.Job) -> None:
    """For the job, or for the children that it waits for."""
    with house.db.read() as session:
        waiting = queueing.to_ring_for(session, job)
    for each in waiting:
        house.doorbell.ring(*each)


def ring_following(house: House, job: tables.Job) -> None:
    """A task has left the queue, and another may have waited for it, or the job that it belongs to."""
    if job.learner_id is None:
        return
    with house.db.read() as session:
        following = turns.following(session, job.learner_id)
        parent = None if job.parent_id is None else session.get(tables.Job, job.parent_id)
    if following is not None:
        house.doorbell.ring(*following)
    if parent is not None and parent.state == "queued":
        ring(house, parent)
