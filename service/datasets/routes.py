from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy.orm import Session

from flashcards.contract.base import DatasetId, Name
from flashcards.contract.resources import Dataset, Page
from ledger import jobs, paging, scope, tables
from ledger.errors import Conflict
from ledger.ids import new_id
from service import views
from service.deps import HouseDep, IdempotencyKey, TenantDep
from service.downloads import download
from service.files.facts import DatasetFacts, DatasetQuestion
from service.intake import RAW_BODY, take_in
from service.paging import Cursor, Limit, decode_cursor
from service.uploads import Upload

router = APIRouter(prefix="/v1/datasets", tags=["datasets"])


@router.post("", status_code=201, response_model=Dataset, openapi_extra=RAW_BODY)
async def create_dataset(
    request: Request,
    house: HouseDep,
    tenant: TenantDep,
    name: Annotated[Name, Query(description="what people call it")],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Upload images. The body is an npz with `x`, or `x_train` and `x_test`; labels (`y...`) may come along."""
    question = DatasetQuestion(max_bytes=house.settings.max_dataset_bytes)

    def record(session: Session, upload: Upload, facts: DatasetFacts) -> Dataset:
        row = tables.Dataset(
            id=new_id("dataset"),
            tenant=tenant,
            name=name,
            digest=upload.digest,
            size=upload.size,
            format=facts.format,
            splits={split: seen.model_dump(mode="json") for split, seen in facts.splits.items()},
        )
        session.add(row)
        session.flush()
        return views.dataset(row)

    return await take_in(request, house, tenant, idempotency_key, question, record)


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


@router.get(
    "/{dataset_id}/file", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
)
def get_dataset_file(dataset_id: DatasetId, house: HouseDep, tenant: TenantDep) -> Response:
    """The file as it was uploaded."""
    with house.db.read() as session:
        row = scope.find(session, tables.Dataset, tenant, dataset_id)
    return download(house, tenant, row.digest, "application/octet-stream", f"{row.id}.{row.format}")


@router.delete("/{dataset_id}", status_code=204)
def delete_dataset(dataset_id: DatasetId, house: HouseDep, tenant: TenantDep) -> None:
    with house.db.write() as session:
        row = scope.find(session, tables.Dataset, tenant, dataset_id)
        if job_id := jobs.needed_by(session, tenant, dataset_id):
            raise Conflict(f"{job_id} still needs this dataset: wait for it or cancel it")
        session.delete(row)
