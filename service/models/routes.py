from collections.abc import Callable
from math import prod
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.base import ModelId, Name
from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.image import ImageShape, Shape
from flashcards.contract.resources import Lineage, Model, Page
from ledger import blobs, fits, jobs, lineage, outcomes, paging, scope, tables
from ledger.errors import Conflict, NotFound
from ledger.ids import new_id
from ledger.store import Kept
from service import views
from service.deps import HouseDep, IdempotencyKey, PrincipalDep, TenantDep
from service.downloads import WishDep, download, file_answers
from service.errors import Invalid, first_message
from service.files.facts import CapsuleQuestion, ModelFacts, ModelQuestion, ProbeFacts, ProbeQuestion
from service.files.model import read_architecture, read_range
from service.intake import RAW_BODY, take_in
from service.paging import Cursor, Limit, decode_cursor
from service.uploads import Upload

router = APIRouter(prefix="/v1/models", tags=["models"])

Value = TypeVar("Value")
_shape: TypeAdapter[ImageShape] = TypeAdapter(Shape)


@router.post("", status_code=201, response_model=Model, openapi_extra=RAW_BODY)
async def create_model(
    request: Request,
    house: HouseDep,
    principal: PrincipalDep,
    name: Annotated[Name, Query(description="what people call it")],
    architecture: Annotated[
        str | None,
        Query(
            max_length=1000,
            description="a name such as blk_4_fil_64, or JSON; else taken from the file's metadata",
            examples=["blk_4_fil_64", "conv_ae_32_64_128", "dense_ae_256_64_16", "resnet18_10"],
        ),
    ] = None,
    input: Annotated[
        str | None, Query(max_length=20, description="height x width x channels; 32x32x3 if unsaid")
    ] = None,
    range: Annotated[str | None, Query(max_length=50, description="the network's pixel values; 0,1 if unsaid")] = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Upload an autoencoder or a classifier. The body is a safetensors file or a .pt state dict.

    It is checked before the answer. A .pt becomes safetensors, and only that is kept. Where the tensors have other
    names than ours, `mapping` says which was taken for which.
    """
    question = ModelQuestion(
        architecture=_parsed(read_architecture, "architecture", architecture),
        input=_parsed(_shape.validate_python, "input", input),
        range=_parsed(read_range, "range", range),
    )

    def record(session: Session, upload: Upload, facts: ModelFacts) -> Model:
        row = tables.Model(
            id=new_id("model"),
            tenant=principal.tenant,
            name=name,
            architecture=facts.architecture.model_dump(mode="json"),
            input=str(facts.input),
            range=list(facts.range),
            parameters=facts.parameters,
            digest=upload.digest,
            size=upload.size,
            origin="upload",
            mapping=facts.mapping,
            uploaded_digest=upload.uploaded_digest,
        )
        session.add(row)
        session.flush()
        return views.model(row)

    return await take_in(request, house, principal, idempotency_key, question, record)


@router.get("")
def list_models(house: HouseDep, tenant: TenantDep, limit: Limit = 50, cursor: Cursor = None) -> Page[Model]:
    before = decode_cursor(cursor, "model")
    with house.db.read() as session:
        rows, last = paging.page(session, scope.scoped(tables.Model, tenant), tables.Model.id, limit, before)
        return views.page([views.model(row) for row in rows], last)


@router.get("/{model_id}")
def get_model(model_id: ModelId, house: HouseDep, tenant: TenantDep) -> Model:
    with house.db.read() as session:
        return views.model(scope.find(session, tables.Model, tenant, model_id))


@router.head("/{model_id}/weights", include_in_schema=False)
@router.get("/{model_id}/weights", response_class=Response, responses=file_answers())
def get_model_weights(model_id: ModelId, house: HouseDep, tenant: TenantDep, wish: WishDep) -> Response:
    """The safetensors file."""
    with house.db.read() as session:
        row = scope.find(session, tables.Model, tenant, model_id)
    return download(house, tenant, row.digest, "application/octet-stream", f"{row.id}.safetensors", wish)


@router.get("/{model_id}/lineage")
def get_model_lineage(model_id: ModelId, house: HouseDep, tenant: TenantDep) -> Lineage:
    """Which job and data made it, and what was made of it."""
    with house.db.read() as session:
        return lineage.of_model(session, tenant, model_id)


@router.put("/{model_id}/probe", response_model=Model, openapi_extra=RAW_BODY)
async def put_model_probe(model_id: ModelId, request: Request, house: HouseDep, principal: PrincipalDep) -> Response:
    """Images `x`, N x H x W x C, and the answers `y` that your own network gives, as safetensors, float32.

    The answers of an autoencoder are N x H x W x C as well, those of a classifier N x classes, before a softmax.

    From then on every job that uses the model first checks that ours gives the same answers.
    """
    with house.db.read() as session:
        model = views.model(scope.find(session, tables.Model, principal.tenant, model_id))

    def record(session: Session, upload: Upload, facts: ProbeFacts) -> Model:
        row = scope.find(session, tables.Model, principal.tenant, model_id)
        row.probe_digest = upload.digest
        return views.model(row)

    question = ProbeQuestion(input=model.input, answer=model.architecture.answer_shape(model.input))
    return await take_in(request, house, principal, None, question, record, status=200)


@router.put("/{model_id}/capsule", response_model=Model, openapi_extra=RAW_BODY)
async def put_model_capsule(model_id: ModelId, request: Request, house: HouseDep, principal: PrincipalDep) -> Response:
    """What was measured on its images where they are: `flashcards capsule` or `flashcards.measure_capsule` makes it.

    It takes the place of the one that is there.
    """
    with house.db.read() as session:
        row = scope.find(session, tables.Model, principal.tenant, model_id)
    model = views.model(row)
    fits.check_reconstructs(model.architecture, "model")
    question = CapsuleQuestion(
        digests=[digest for digest in (row.digest, row.uploaded_digest) if digest],
        latent_size=prod(model.architecture.latent_shape(model.input)),
        channels=model.input.channels,
    )

    def record(session: Session, upload: Upload, facts: CapsuleFacts) -> Model:
        row = scope.find(session, tables.Model, principal.tenant, model_id)
        before, row.capsule_digest = row.capsule_digest, upload.digest
        row.capsule = outcomes.stored_capsule(facts, Kept(upload.digest, upload.size))
        session.flush()
        blobs.let_go(session, principal.tenant, [before])
        return views.model(row)

    return await take_in(request, house, principal, None, question, record, status=200)


@router.head("/{model_id}/capsule", include_in_schema=False)
@router.get("/{model_id}/capsule", response_class=Response, responses=file_answers())
def get_model_capsule(model_id: ModelId, house: HouseDep, tenant: TenantDep, wish: WishDep) -> Response:
    """The safetensors file of the capsule."""
    with house.db.read() as session:
        row = scope.find(session, tables.Model, tenant, model_id)
    if row.capsule_digest is None:
        raise NotFound("capsule", model_id)
    return download(
        house, tenant, row.capsule_digest, "application/octet-stream", f"{row.id}-capsule.safetensors", wish
    )


@router.delete("/{model_id}", status_code=204)
def delete_model(model_id: ModelId, house: HouseDep, tenant: TenantDep) -> None:
    with house.db.write() as session:
        row = scope.find(session, tables.Model, tenant, model_id)
        if job_id := jobs.needed_by(session, tenant, model_id):
            raise Conflict(f"{job_id} still needs this model: wait for it or cancel it")
        if cards := session.scalar(select(tables.Flashcards.id).where(tables.Flashcards.model_id == model_id).limit(1)):
            raise Conflict(f"{cards} were made from this model: delete them first")
        session.delete(row)
        blobs.let_go(session, tenant, [row.digest, row.probe_digest, row.capsule_digest])


def _parsed(parse: Callable[[str], Value], field: str, text: str | None) -> Value | None:
    if text is None:
        return None
    try:
        return parse(text)
    except ValidationError as error:
        raise Invalid(f"query.{field}", first_message(error)) from None
