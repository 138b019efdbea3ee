from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.base import JobId, LearnerId
from flashcards.contract.learners import Learner, LearnerLineage, LearnerSpec, Matrix, Rollback, Version
from flashcards.contract.resources import Job, Model, Page, Validated
from flashcards.contract.specs import LearnSpec, TaskSpec
from ledger import ancestry, blobs, bundles, learners, matrix, paging, scope, tables
from ledger.errors import Conflict, NotFound
from ledger.store import Kept
from ledger.versions import chain
from service import views
from service.bundles import answer as bundle_answer
from service.deps import House, HouseDep, IdempotencyKey, PrincipalDep, TenantDep, ValidateOnly
from service.downloads import WishDep, download, file_answers
from service.idempotency import fingerprint, once
from service.jobs import queueing
from service.learners.sheet import as_csv
from service.paging import Cursor, Limit, decode_cursor, decode_number

router = APIRouter(prefix="/v1/learners", tags=["learners"])
Number = Annotated[int, Path(ge=0, lt=2**63, description="of the version; 0 is the model that it began with")]
Which = Annotated[
    learners.Network, Query(description="of a learner of classes: the classifier, or what makes cards for it")
]
Task = Annotated[int, Path(ge=1, lt=2**63, description="1 is the first")]


@router.post("", status_code=201, response_model=Learner)
def create_learner(
    spec: LearnerSpec,
    request: Request,
    house: HouseDep,
    principal: PrincipalDep,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """A network that learns task after task: from a model, or from an architecture that knows nothing yet."""
    mark = fingerprint("POST", request.url.path, request.url.query, spec.model_dump_json())
    with once(house.db, principal.tenant, idempotency_key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        with _referring(house, principal.tenant) as (session, kept):
            row, refers_to = learners.create(session, principal.tenant, spec)
            kept += refers_to
            answer = _view(session, row).model_dump_json()
            return attempt.keep(session, mark, 201, answer, f"/v1/learners/{row.id}")


@router.get("")
def list_learners(
    house: HouseDep,
    tenant: TenantDep,
    compare: Annotated[
        JobId | None, Query(description="those of this comparison; else those that belong to none")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Learner]:
    before = decode_cursor(cursor, "learner")
    statement = scope.scoped(tables.Learner, tenant).where(tables.Learner.compare_id.is_not_distinct_from(compare))
    with house.db.read() as session:
        rows, last = paging.page(session, statement, tables.Learner.id, limit, before)
        heads = learners.heads(session, rows)
        return views.page([views.learner(row, heads.get(row.id)) for row in rows], last)


@router.get("/{learner_id}")
def get_learner(learner_id: LearnerId, house: HouseDep, tenant: TenantDep) -> Learner:
    with house.db.read() as session:
        return _view(session, learners.find(session, tenant, learner_id))


@router.delete("/{learner_id}", status_code=204)
def delete_learner(learner_id: LearnerId, house: HouseDep, tenant: TenantDep) -> None:
    """With all its versions. Models and datasets stay."""
    with house.db.write() as session:
        digests = learners.delete(session, tenant, learner_id)
        blobs.let_go(session, tenant, digests)


@router.post("/{learner_id}/tasks", status_code=202, response_model=Job, responses={200: {"model": Validated}})
def create_task(
    learner_id: LearnerId,
    task: TaskSpec,
    request: Request,
    house: HouseDep,
    principal: PrincipalDep,
    validate_only: ValidateOnly = False,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Learn the next task. It becomes a job of kind `learn`; the jobs of a learner run one after the other."""
    with house.db.read() as session:
        learners.find(session, principal.tenant, learner_id)
    spec = LearnSpec(kind="learn", learner=learner_id, **dict(task))
    if validate_only:
        return queueing.validate(house, principal, spec)
    return queueing.enqueue(request, house, principal, idempotency_key, spec)


@router.post("/{learner_id}/rollback", response_model=Learner)
def roll_back_learner(
    learner_id: LearnerId,
    body: Rollback,
    request: Request,
    house: HouseDep,
    tenant: TenantDep,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The next task starts from this version. Those after it stay, and can be rolled back to."""
    mark = fingerprint("POST", request.url.path, request.url.query, body.model_dump_json())
    with once(house.db, tenant, idempotency_key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        with house.db.write() as session:
            row = learners.roll_back(session, tenant, learner_id, body.version)
            answer = _view(session, row).model_dump_json()
            return attempt.keep(session, mark, 200, answer, f"/v1/learners/{learner_id}")


@router.get("/{learner_id}/versions")
def list_versions(
    learner_id: LearnerId, house: HouseDep, tenant: TenantDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[Version]:
    """Newest first: also those that were rolled back from."""
    before = decode_number(cursor)
    with house.db.read() as session:
        learners.find(session, tenant, learner_id)
        statement = select(tables.Version).where(tables.Version.learner_id == learner_id)
        rows, last = paging.page(session, statement, tables.Version.number, limit, before)
        capsules = learners.capsules(session, learner_id, [row.number for row in rows])
        items = [views.version(row, capsules[row.number]) for row in rows]
        return views.page(items, None if last is None else str(last))


@router.get("/{learner_id}/versions/{number}")
def get_version(learner_id: LearnerId, number: Number, house: HouseDep, tenant: TenantDep) -> Version:
    with house.db.read() as session:
        row = learners.find_version(session, tenant, learner_id, number)
        return views.version(row, learners.capsules(session, learner_id, [number])[number])


@router.head("/{learner_id}/versions/{number}/weights", include_in_schema=False)
@router.get("/{learner_id}/versions/{number}/weights", response_class=Response, responses=file_answers())
def get_version_weights(
    learner_id: LearnerId,
    number: Number,
    house: HouseDep,
    tenant: TenantDep,
    wish: WishDep,
    network: Which = "learner",
) -> Response:
    """The safetensors file."""
    with house.db.read() as session:
        row = learners.find_version(session, tenant, learner_id, number)
        kept = learners.weights_of(session, tenant, row, network)
    name = (
        f"{learner_id}-{number}.safetensors" if network == "learner" else f"{learner_id}-{number}-{network}.safetensors"
    )
    return download(house, tenant, kept.digest, "application/octet-stream", name, wish)


@router.head("/{learner_id}/versions/{number}/capsules/{task}", include_in_schema=False)
@router.get("/{learner_id}/versions/{number}/capsules/{task}", response_class=Response, responses=file_answers())
def get_version_capsule(
    learner_id: LearnerId, number: Number, task: Task, house: HouseDep, tenant: TenantDep, wish: WishDep
) -> Response:
    """The safetensors file of what a version keeps of one of its tasks."""
    with house.db.read() as session:
        learners.find_version(session, tenant, learner_id, number)
        row = learners.capsules(session, learner_id, [number])[number].get(task)
    if row is None:
        raise NotFound("capsule", str(task))
    name = f"{learner_id}-{number}-capsule-{task}.safetensors"
    return download(house, tenant, row.digest, "application/octet-stream", name, wish)


@router.get("/{learner_id}/versions/{number}/bundle", response_class=Response, responses=bundle_answer.ANSWERS)
def get_version_bundle(
    learner_id: LearnerId,
    number: Number,
    house: HouseDep,
    tenant: TenantDep,
    if_none_match: bundle_answer.IfNoneMatch = None,
) -> Response:
    """A zip of the learner along the versions that led to this one: weights, capsules, measures, lineage, a model card.

    `POST /v1/bundles` makes a learner of it, which goes on learning from there.
    """
    with house.db.read() as session:
        packed = bundles.of_version(session, tenant, learner_id, number)
    return bundle_answer.answer(house, tenant, packed, f"{learner_id}-{number}.zip", if_none_match)


@router.get("/{learner_id}/lineage")
def get_learner_lineage(learner_id: LearnerId, house: HouseDep, tenant: TenantDep) -> LearnerLineage:
    """The models that it began with, or the bundle that brought it."""
    with house.db.read() as session:
        row = learners.find(session, tenant, learner_id)
        began = [id for id in (row.model_id, row.autoencoder_id) if id is not None]
        return LearnerLineage(learner=row.id, made_from=began, imported=ancestry.imported(session, row.id))


@router.post("/{learner_id}/versions/{number}/model", status_code=201, response_model=Model)
def create_model_of_version(
    learner_id: LearnerId,
    number: Number,
    request: Request,
    house: HouseDep,
    tenant: TenantDep,
    network: Which = "learner",
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """A model with the weights of this version, for jobs that read models. It has a capsule if it knows one task."""
    mark = fingerprint("POST", request.url.path, request.url.query)
    with once(house.db, tenant, idempotency_key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        with _referring(house, tenant) as (session, kept):
            row, refers_to = learners.as_model(session, tenant, learner_id, number, network)
            kept += refers_to
            answer = views.model(row).model_dump_json()
            return attempt.keep(session, mark, 201, answer, f"/v1/models/{row.id}")


@router.get(
    "/{learner_id}/matrix",
    response_model=Matrix,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
def get_matrix(
    learner_id: LearnerId,
    house: HouseDep,
    tenant: TenantDep,
    format: Annotated[
        Literal["json", "csv"] | None, Query(description="else as the Accept header says, else JSON")
    ] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """The error on each task after each task, along the versions that led to the newest."""
    with house.db.read() as session:
        row = learners.find(session, tenant, learner_id)
        found = matrix.assemble(row, chain(session, row))
    if format == "csv" or (format is None and (accept or "").startswith("text/csv")):
        return Response(as_csv(found), 200, None, "text/csv")
    return Response(found.model_dump_json(), 200, None, "application/json")


@contextmanager
def _referring(house: House, tenant: str) -> Iterator[tuple[Session, list[Kept]]]:
    """A transaction that refers to files which others refer to already: those that are put on the list."""
    kept: list[Kept] = []
    try:
        with blobs.referring(house.db, house.store, tenant, kept) as session:
            yield session, kept
    except blobs.Collected:
        raise Conflict("its file is not there any more: somebody has just deleted it") from None


def _view(session: Session, row: tables.Learner) -> Learner:
    return views.learner(row, learners.heads(session, [row]).get(row.id))
