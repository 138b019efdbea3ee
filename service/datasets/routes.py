from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy.orm import Session

from flashcards.contract.base import DatasetId, Name
from flashcards.contract.image import ImageShape, parse_image_shape
from flashcards.contract.resources import Dataset, Page
from ledger import blobs, jobs, paging, retention, scope, tables
from ledger.clock import now
from ledger.errors import Conflict
from ledger.ids import new_id
from service import views
from service.bodies import Upload
from service.deps import HouseDep, IdempotencyKey, PrincipalDep, TenantDep
from service.downloads import WishDep, download, file_answers
from service.errors import Invalid
from service.files.facts import DatasetFacts, DatasetQuestion
from service.intake import FILE_OR_UPLOAD, InParts, take_in
from service.paging import Cursor, Limit, decode_cursor

router = APIRouter(prefix="/v1/datasets", tags=["datasets"])


@router.post("", status_code=201, response_model=Dataset, openapi_extra=FILE_OR_UPLOAD)
async def create_dataset(
    request: Request,
    house: HouseDep,
    principal: PrincipalDep,
    name: Annotated[Name, Query(description="what people call it")],
    input: Annotated[
        str | None,
        Query(max_length=20, description="height x width x channels (1 or 3) that the images are brought to"),
    ] = None,
    invert: Annotated[bool, Query(description="keep 255 - x: dark ink on white becomes white on black")] = False,
    image: Annotated[
        str | None, Query(max_length=200, description="parquet: the column of the images; found by itself if unsaid")
    ] = None,
    label: Annotated[str | None, Query(max_length=200, description="parquet: the column of the labels")] = None,
    upload: InParts = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Upload images. The body is an npz with `x`, or `x_train` and `x_test`; labels (`y...`) may come along.

    Or it is a zip of PNG, JPEG or WEBP images, in folders that are labels or in none, in `train/` and `test/` or not;
    or what MNIST, CIFAR and SVHN are published as: IDX (also gzipped, or the four files in a zip), binary CIFAR (also
    its tar.gz), and .mat; or parquet with a column of encoded images, as bytes or as the Hugging Face libraries write
    them. It becomes an npz, and only that is kept.
    """
    question = DatasetQuestion(
        max_bytes=house.settings.max_dataset_bytes,
        input=_grey_or_colour(input),
        invert=invert,
        image=image,
        label=label,
    )

    def record(session: Session, upload: Upload, facts: DatasetFacts) -> Dataset:
        row = tables.Dataset(
            id=new_id("dataset"),
            tenant=principal.tenant,
            name=name,
            digest=upload.digest,
            size=upload.size,
            format=facts.format,
            uploaded_digest=upload.uploaded_digest,
            splits={split: seen.model_dump(mode="json") for split, seen in facts.splits.items()},
            preparation=facts.preparation.model_dump(mode="json") if facts.preparation else None,
            retain=principal.retain_data,
            expires_at=None if principal.retain_data else now() + house.settings.unread_data_hours * 3600,
        )
        session.add(row)
        session.flush()
        return views.dataset(row)

    return await take_in(request, house, principal, idempotency_key, question, record, upload_id=upload)


@router.get("")
def list_datasets(house: HouseDep, tenant: TenantDep, limit: Limit = 50, cursor: Cursor = None) -> Page[Dataset]:
    before = decode_cursor(cursor, "dataset")
    with house.db.read() as session:
        rows, last = paging.page(session, scope.scoped(tables.Dataset, tenant), tables.Dataset.id, limit, before)
        return views.page([views.dataset(row) for row in rows], last)


@router.get("/{dataset_id}")
def get_dataset(dataset_id: DatasetId, house: HouseDep, tenant: TenantDep) -> Dataset:
    with house.db.read() as session:
        return views.dataset(scope.find(session, tables.Dataset, tenant, dataset_id))


@router.head("/{dataset_id}/file", include_in_schema=False)
@router.get("/{dataset_id}/file", response_class=Response, responses=file_answers())
def get_dataset_file(dataset_id: DatasetId, house: HouseDep, tenant: TenantDep, wish: WishDep) -> Response:
    """The npz as it was uploaded, or as it was made from what was uploaded."""
    with house.db.read() as session:
        row = scope.find(session, tables.Dataset, tenant, dataset_id)
    return download(house, tenant, row.digest, "application/octet-stream", f"{row.id}.{row.format}", wish)


@router.delete("/{dataset_id}", status_code=204)
def delete_dataset(dataset_id: DatasetId, house: HouseDep, tenant: TenantDep) -> None:
    with house.db.write() as session:
        row = scope.find(session, tables.Dataset, tenant, dataset_id)
        if job_id := jobs.needed_by(session, tenant, dataset_id):
            raise Conflict(f"{job_id} still needs this dataset: wait for it or cancel it")
        if row.retain:
            session.delete(row)
            blobs.let_go(session, tenant, [row.digest])
            return
        discarded = retention.discard(session, row)
    retention.collect_discarded(house.db, house.store, discarded)


def _grey_or_colour(text: str | None) -> ImageShape | None:
    if text is None:
        return None
    try:
        shape = parse_image_shape(text)
    except ValueError as error:
        raise Invalid("query.input", str(error)) from None
    if shape.channels not in (1, 3):
        raise Invalid("query.input", "images become grey, 1 channel, or colour, 3 channels")
    return shape
