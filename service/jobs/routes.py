import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import Field
from sqlalchemy.orm import Session

from flashcards.contract.base import JobId, LearnerId
from flashcards.contract.resources import (
    TERMINAL_STATES,
    Event,
    Job,
    JobState,
    JobSummary,
    Metrics,
    Page,
    Validated,
)
from flashcards.contract.specs import JobKind, JobSpec, job_spec
from ledger import (
    admission,
    artifacts,
    blobs,
    compare,
    events,
    jobs,
    lifecycle,
    paging,
    parents,
    retention,
    scope,
    tables,
)
from ledger.errors import Conflict, NotFound
from ledger.summaries import job_summary
from service import views
from service.deps import House, HouseDep, IdempotencyKey, PrincipalDep, TenantDep, ValidateOnly
from service.downloads import WishDep, download, file_answers
from service.errors import Invalid
from service.idempotency import fingerprint, once
from service.jobs import queueing
from service.jobs.stream import SENT_EVENT, stream
from service.paging import Cursor, Limit, decode_cursor

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
ArtifactName = Annotated[str, Path(max_length=100)]
EVENTS_AT_ONCE = 500


@router.post("", status_code=202, response_model=Job, responses={200: {"model": Validated}})
def create_job(
    spec: JobSpec,
    request: Request,
    house: HouseDep,
    principal: PrincipalDep,
    validate_only: ValidateOnly = False,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Queue a job. The answer is given once it is on record; a worker takes it from there."""
    if validate_only:
        return queueing.validate(house, principal, spec)
    return queueing.enqueue(request, house, principal, idempotency_key, spec)


@router.get("")
def list_jobs(
    house: HouseDep,
    tenant: TenantDep,
    state: JobState | None = None,
    kind: JobKind | None = None,
    parent: Annotated[
        JobId | Literal["none"] | None, Query(description="only the children of this job; `none`: no children of any")
    ] = None,
    learner: Annotated[LearnerId | None, Query(description="only the tasks of this learner")] = None,
    order: Annotated[Literal["newest", "oldest"], Query(description="which comes first")] = "newest",
    label: Annotated[
        list[Annotated[str, Field(pattern="^[^=]{1,63}=.{0,255}$")]], Query(max_length=16, description="key=value")
    ] = [],  # noqa: B006 (FastAPI copies it)
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[JobSummary]:
    seen = decode_cursor(cursor, "job")
    statement = scope.scoped(tables.Job, tenant)
    if learner is not None:
        statement = scope.few(tables.Job, tenant, tables.Job.learner_id == learner)
    if state is not None:
        statement = statement.where(tables.Job.state == state)
    if kind is not None:
        statement = statement.where(tables.Job.kind == kind)
    if parent is not None:
        statement = statement.where(tables.Job.parent_id == (None if parent == "none" else parent))
    for pair in label:
        key, _, value = pair.partition("=")
        statement = statement.where(tables.Job.labels[key].as_string() == value)
    with house.db.read() as session:
        rows, last = paging.page(session, statement, tables.Job.id, limit, seen, order == "oldest")
        return views.page([job_summary(row) for row in rows], last)


@router.get("/{job_id}")
async def get_job(
    job_id: JobId,
    house: HouseDep,
    tenant: TenantDep,
    wait: Annotated[
        float, Query(ge=0, le=60, description="seconds to wait for the job to end; less, if the API closes")
    ] = 0,
) -> Job:
    deadline = asyncio.get_running_loop().time() + wait
    while True:
        job, seq = await asyncio.to_thread(_read, house, tenant, job_id)
        left = deadline - asyncio.get_running_loop().time()
        if job.state in TERMINAL_STATES or left <= 0 or house.watch.closing:
            return job
        await house.watch.changed(job_id, seq, left)


@router.delete("/{job_id}", status_code=204)
def delete_job(job_id: JobId, house: HouseDep, tenant: TenantDep) -> None:
    """The job, its events, metrics and files. Models and flashcards that it made stay.

    A comparison goes with its children and its learners, a capture that was split with its shards.
    """
    with house.db.write() as session:
        row = _ended(session, tenant, job_id)
        parents.check_no_parent(row, "delete")
        digests = compare.delete(session, row)
        blobs.let_go(session, tenant, digests)


@router.post("/{job_id}/cancel", status_code=202, response_model=Job)
def cancel_job(
    job_id: JobId, request: Request, house: HouseDep, tenant: TenantDep, idempotency_key: IdempotencyKey = None
) -> Response:
    """Stop the process that runs it, or all that its children run in. What was made so far stays readable."""

    def verb(session: Session) -> None:
        lifecycle.request_cancel(session, tenant, job_id)

    response = _change(request, house, tenant, job_id, idempotency_key, verb)
    retention.sweep(house.db, house.store)  # a queued job has ended here, and perhaps its data with it
    with house.db.read() as session:
        row = jobs.find(session, tenant, job_id)
    queueing.ring_following(house, row)
    return response


@router.post("/{job_id}/retry", status_code=202, response_model=Job)
def retry_job(
    job_id: JobId, request: Request, house: HouseDep, tenant: TenantDep, idempotency_key: IdempotencyKey = None
) -> Response:
    """Queue a failed or cancelled job again. It goes on from its last resume point.

    Of a comparison, the tasks that did not come to their end are queued again; of a capture that was split, the shards.
    """

    def verb(session: Session) -> None:
        row = jobs.find(session, tenant, job_id)
        lifecycle.retry(session, tenant, job_id)
        spec = job_spec.validate_python(row.spec)
        # Whether it is mirrored was settled when it came in; a tracking server that is gone since keeps nothing back.
        admission.admit(session, house.settings, tenant, spec.model_copy(update={"tracking": None}))

    response = _change(request, house, tenant, job_id, idempotency_key, verb)
    with house.db.read() as session:
        row = jobs.find(session, tenant, job_id)
    queueing.ring(house, row)
    return response


@router.get(
    "/{job_id}/events",
    response_model=list[Event],
    responses={200: {"content": {"text/event-stream": {"itemSchema": SENT_EVENT}}}},
)
async def watch_job(
    job_id: JobId,
    house: HouseDep,
    tenant: TenantDep,
    follow: Annotated[bool, Query(description="false: what there is, as JSON, 500 at a time")] = True,
    after: Annotated[int, Query(ge=0, lt=2**63, description="only events after this seq")] = 0,
    last_event_id: Annotated[str | None, Header(description="what a browser sends when it comes back")] = None,
) -> Response:
    """What happens to the job, live (SSE), from the first event on or from where you left."""
    after = _after(after, last_event_id)
    await asyncio.to_thread(_read, house, tenant, job_id)
    if follow:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream(house, tenant, job_id, after), 200, headers, "text/event-stream")
    return await asyncio.to_thread(_events, house, job_id, after)


@router.get("/{job_id}/metrics")
def get_job_metrics(job_id: JobId, house: HouseDep, tenant: TenantDep) -> Metrics:
    with house.db.read() as session:
        jobs.find(session, tenant, job_id)
        return views.metrics(jobs.metrics_of(session, job_id))


@router.get("/{job_id}/logs", response_class=PlainTextResponse)
def get_job_logs(job_id: JobId, house: HouseDep, tenant: TenantDep) -> str:
    """What the runner printed."""
    with house.db.read() as session:
        jobs.find(session, tenant, job_id)
        return "".join(f"{row.data['line']}\n" for row in events.of_kind(session, job_id, "log"))


@router.head("/{job_id}/artifacts/{name}", include_in_schema=False)
@router.get("/{job_id}/artifacts/{name}", response_class=Response, responses=file_answers())
def get_artifact(job_id: JobId, name: ArtifactName, house: HouseDep, tenant: TenantDep, wish: WishDep) -> Response:
    with house.db.read() as session:
        row = _artifact(session, tenant, job_id, name)
    inline = row.media_type == "image/png"
    return download(house, tenant, row.digest, row.media_type, row.name, wish, inline=inline)


@router.delete("/{job_id}/artifacts/{name}", status_code=204)
def delete_artifact(job_id: JobId, name: ArtifactName, house: HouseDep, tenant: TenantDep) -> None:
    with house.db.write() as session:
        job = _ended(session, tenant, job_id)
        if job.kind == "shard":
            parents.check_no_parent(job, "delete")
        row = _artifact(session, tenant, job_id, name)
        session.delete(row)
        blobs.let_go(session, tenant, [row.digest])


def _events(house: House, job_id: str, after: int) -> Response:
    with house.db.read() as session:
        rows = events.after(session, job_id, after, EVENTS_AT_ONCE)
        return JSONResponse([views.event(row).model_dump(mode="json") for row in rows])


def _read(house: House, tenant: str, job_id: str) -> tuple[Job, int]:
    with house.db.read() as session:
        row = jobs.find(session, tenant, job_id)
        return _view(session, row), row.seq


def _view(session: Session, row: tables.Job) -> Job:
    position = jobs.queue_position(session, row)
    return views.job(row, position, jobs.attempts_of(session, row.id), artifacts.products_of(session, row.id))


def _change(request: Request, house: House, tenant: str, job_id: str, key: str | None, verb: Any) -> Response:
    mark = fingerprint("POST", request.url.path, request.url.query)
    with once(house.db, tenant, key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        with house.db.write() as session:
            verb(session)
            session.expire_all()
            answer = _view(session, jobs.find(session, tenant, job_id)).model_dump_json()
            return attempt.keep(session, mark, 202, answer, f"/v1/jobs/{job_id}")


def _ended(session: Session, tenant: str, job_id: str) -> tables.Job:
    row = jobs.find(session, tenant, job_id)
    if row.state not in TERMINAL_STATES:
        raise Conflict(f"the job is {row.state}: cancel it, or wait for it to end")
    return row


def _artifact(session: Session, tenant: str, job_id: str, name: str) -> tables.Artifact:
    jobs.find(session, tenant, job_id)
    row = session.get(tables.Artifact, (job_id, name))
    if row is None or row.role != "product":
        raise NotFound("artifact", name)
    return row


def _after(after: int, last_event_id: str | None) -> int:
    if last_event_id is None:
        return after
    if not last_event_id.isascii() or not last_event_id.isdigit() or len(last_event_id) > 18:
        raise Invalid("header.last-event-id", "an event id is the number of the last event you have seen")
    return max(after, int(last_event_id))
