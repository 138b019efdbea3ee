from collections.abc import Callable
from math import prod
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.architecture import Task
from flashcards.contract.base import ModelId, Name
from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.image import ImageShape, Shape
from flashcards.contract.resources import Lineage, Model, Page
from flashcards.contract.tracking import ModelImport
from ledger import ancestry, blobs, bundles, exports, fits, jobs, lineage, outcomes, paging, scope, tables
from ledger.errors import Conflict, NotFound
from ledger.ids import new_id
from ledger.store import Kept
from service import views
from service.bodies import Upload
from service.bundles import answer as bundle_answer
from service.deps import HouseDep, IdempotencyKey, PrincipalDep, TenantDep
from service.downloads import WishDep, conflict, download, file_answers
from service.errors import Invalid, first_message
from service.files.facts import CapsuleQuestion, ModelFacts, ModelQuestion, ProbeFacts, ProbeQuestion
from service.files.model import read_architecture, read_range
from service.idempotency import fingerprint
from service.intake import FILE_OR_UPLOAD, RAW_BODY, InParts, take_in
from service.models.importing import arriving, called
from service.paging import Cursor, Limit, decode_cursor

router = APIRouter(prefix="/v1/models", tags=["models"])
UNEXPORTED = conflict("it was not exported yet")

Value = TypeVar("Value")
_shape: TypeAdapter[ImageShape] = TypeAdapter(Shape)


@router.post("", status_code=201, response_model=Model, openapi_extra=FILE_OR_UPLOAD)
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
    bottleneck: Annotated[
        str | None,
        Query(max_length=200, description="of an ONNX file: the tensor that is the latent; else the smallest is found"),
    ] = None,
    task: Annotated[
        Task | None, Query(description="of an ONNX file: `classify` for a classifier; else it gives images back")
    ] = None,
    upload: InParts = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Upload an autoencoder or a classifier. The body is a safetensors file, a .pt state dict or an ONNX file.

    It is checked before the answer. A .pt becomes safetensors, and only that is kept. Where the tensors have other
    names than ours, `mapping` says which was taken for which. An ONNX file is kept as it is: one file, of standard
    operators, whose answer has the shape of its input; `architecture` says what was read off its graph.
    """
    question = ModelQuestion(
        architecture=_parsed(read_architecture, "architecture", architecture),
        input=_parsed(_shape.validate_python, "input", input),
        range=_parsed(read_range, "range", range),
        bottleneck=bottleneck,
        task=task,
    )

    record = _recorder(principal.tenant, name)
    return await take_in(request, house, principal, idempotency_key, question, record, upload_id=upload)


@router.post(":import", status_code=201, response_model=Model)
async def import_model(
    asked: ModelImport,
    request: Request,
    house: HouseDep,
    principal: PrincipalDep,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Take a registered model over from the tracking server of this service, checked like an upload.

    The weights are a safetensors file or a .pt state dict. Models that this service has registered come back as they
    were; of others `architecture`, `input` and `range` may have to be said.
    """
    question = ModelQuestion(architecture=asked.architecture, input=asked.input, range=asked.range)
    return await take_in(
        request,
        house,
        principal,
        idempotency_key,
        question,
        _recorder(principal.tenant, called(asked)),
        arrival=arriving(asked, principal.tenant),
        asked=fingerprint("POST", request.url.path, request.url.query, asked.model_dump_json()),
    )


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
    """The safetensors file, or the ONNX file that was uploaded."""
    with house.db.read() as session:
        row = scope.find(session, tables.Model, tenant, model_id)
    return download(house, tenant, row.digest, "application/octet-stream", f"{row.id}.{fits.form_of(row)}", wish)


@router.head("/{model_id}/onnx", include_in_schema=False)
@router.get("/{model_id}/onnx", response_class=Response, responses=file_answers() | UNEXPORTED)
def get_model_onnx(model_id: ModelId, house: HouseDep, tenant: TenantDep, wish: WishDep) -> Response:
    """The ONNX file that the newest job of kind `export` made of it. Where there is none, 409 says how to make it."""
    with house.db.read() as session:
        artifact = exports.newest(session, tenant, model_id, "onnx")
    return download(house, tenant, artifact.digest, artifact.media_type, f"{model_id}.onnx", wish)


@router.get("/{model_id}/bundle", response_class=Response, responses=bundle_answer.ANSWERS)
def get_model_bundle(
    model_id: ModelId, house: HouseDep, tenant: TenantDep, if_none_match: bundle_answer.IfNoneMatch = None
) -> Response:
    """A zip of weights, capsule, recipes, metrics, lineage and a model card. `POST /v1/bundles` takes it in."""
    with house.db.read() as session:
        packed = bundles.of_model(session, tenant, model_id)
    return bundle_answer.answer(house, tenant, packed, f"{model_id}.zip", if_none_match)


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
        ancestry.forget(session, model_id)
        blobs.let_go(session, tenant, [row.digest, row.probe_digest, row.capsule_digest])


def _recorder(tenant: str, name: str) -> Callable[[Session, Upload, ModelFacts], Model]:
    def record(session: Session, upload: Upload, facts: ModelFacts) -> Model:
        row = tables.Model(
            id=new_id("model"),
            tenant=tenant,
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

    return record


def _parsed(parse: Callable[[str], Value], field: str, text: str | None) -> Value | None:
    if text is None:
        return None
    try:
        return parse(text)
    except ValidationError as error:
        raise Invalid(f"query.{field}", first_message(error)) from None
