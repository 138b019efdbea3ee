import json
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from flashcards.contract.base import FlashcardsId, ModelId
from flashcards.contract.recipe import Recipe
from flashcards.contract.resources import Flashcards, Page
from ledger import blobs, jobs, paging, scope, tables
from ledger.errors import Conflict, NotFound
from service import views
from service.deps import House, HouseDep, TenantDep
from service.downloads import WishDep, conflict, download, file_answers
from service.errors import Invalid
from service.paging import Cursor, Limit, decode_cursor

router = APIRouter(prefix="/v1/flashcards", tags=["flashcards"])
BYTES_AT_ONCE = 64 * 1024**2
PICTURES_AT_ONCE = 100
UNMADE = conflict("only their recipe is kept, or they make no such file")


@router.get("")
def list_flashcards(
    house: HouseDep,
    tenant: TenantDep,
    model: Annotated[ModelId | None, Query(description="only those that were captured from this model")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Flashcards]:
    before = decode_cursor(cursor, "flashcards")
    statement = scope.scoped(tables.Flashcards, tenant)
    if model is not None:
        statement = scope.few(tables.Flashcards, tenant, tables.Flashcards.model_id == model)
    with house.db.read() as session:
        rows, last = paging.page(session, statement, tables.Flashcards.id, limit, before)
        return views.page([views.flashcards(row) for row in rows], last)


@router.get("/{flashcards_id}")
def get_flashcards(flashcards_id: FlashcardsId, house: HouseDep, tenant: TenantDep) -> Flashcards:
    with house.db.read() as session:
        return views.flashcards(scope.find(session, tables.Flashcards, tenant, flashcards_id))


@router.get(
    "/{flashcards_id}/cards",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}, "image/png": {}}}, **UNMADE},
)
def get_cards(
    flashcards_id: FlashcardsId,
    house: HouseDep,
    tenant: TenantDep,
    offset: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 100,
    format: Literal["npz", "png"] = "npz",
) -> Response:
    """Some of the cards, as npz (array `x`, N x H x W x C) or as a picture. All of them: the job's `cards.npy`."""
    from service.flashcards import cards

    with house.db.read() as session:
        row = scope.find(session, tables.Flashcards, tenant, flashcards_id)
    recipe = _materialised(row)
    if offset >= recipe.count:
        raise Invalid("query.offset", f"there are {recipe.count} cards: the last offset is {recipe.count - 1}")
    most = PICTURES_AT_ONCE if format == "png" else max(1, BYTES_AT_ONCE // (4 * recipe.input.pixels))
    if limit > most:
        raise Invalid("query.limit", f"at most {most} of these cards at once as {format}")
    try:
        found = cards.read_cards(house.store, tenant, row.digest, row.size, offset, limit)
    except FileNotFoundError:
        raise NotFound("file", "cards.npy") from None
    if format == "png":
        return Response(cards.as_png(found, *recipe.range), media_type="image/png")
    name = f'attachment; filename="{row.id}-{offset}.npz"'
    return Response(cards.as_npz(found), 200, {"Content-Disposition": name}, "application/octet-stream")


@router.get(
    "/{flashcards_id}/cards.parquet",
    response_class=Response,
    responses={200: {"content": {"application/vnd.apache.parquet": {}}}, **UNMADE},
)
def get_cards_parquet(flashcards_id: FlashcardsId, house: HouseDep, tenant: TenantDep) -> Response:
    """All cards as parquet: a column `image` of PNG bytes, laid out as the Hugging Face libraries read it.

    Pixels are 8 bits in it: of float32 cards, `cards` has the numbers themselves.
    """
    with house.db.read() as session:
        row = scope.find(session, tables.Flashcards, tenant, flashcards_id)
    recipe = _materialised(row)
    if recipe.input.channels not in (1, 3):
        raise Conflict(f"these cards have {recipe.input.channels} channels, and pictures have 1 or 3: take npz")
    _check_there(house, row)
    from service.flashcards import cards
    from service.flashcards.parquet import CARDS_AT_ONCE, parquet_chunks

    batches = cards.read_batches(house.store, tenant, row.digest, row.size, recipe.count, CARDS_AT_ONCE)
    headers = {"Content-Disposition": f'attachment; filename="{row.id}.parquet"'}
    return StreamingResponse(parquet_chunks(batches, recipe), 200, headers, "application/vnd.apache.parquet")


def _materialised(row: tables.Flashcards) -> Recipe:
    recipe = views.flashcards(row).recipe
    if not row.materialised:
        raise Conflict(f"only the recipe of these cards is kept; POST /v1/jobs makes them: {_again(row, recipe)}")
    return recipe


def _check_there(house: House, row: tables.Flashcards) -> None:
    """Once the answer has begun, nothing can be said any more."""
    try:
        house.store.size(row.tenant, row.digest)
    except FileNotFoundError:
        raise NotFound("file", "cards.npy") from None


def _again(row: tables.Flashcards, recipe: Recipe) -> str:
    """The body of the job that would make these cards."""
    asked = recipe.model_dump(include={"count", "r", "source", "seed", "dtype", "backend"})
    return json.dumps({"kind": "capture", "model": row.model_id, **asked})


@router.head("/{flashcards_id}/sheet.png", include_in_schema=False)
@router.get("/{flashcards_id}/sheet.png", response_class=Response, responses=file_answers("image/png") | UNMADE)
def get_sheet(flashcards_id: FlashcardsId, house: HouseDep, tenant: TenantDep, wish: WishDep) -> Response:
    """A contact sheet to look at, made by the worker."""
    with house.db.read() as session:
        row = scope.find(session, tables.Flashcards, tenant, flashcards_id)
    return download(house, tenant, row.sheet_digest, "image/png", f"{row.id}.png", wish, inline=True, lasting=True)


@router.delete("/{flashcards_id}", status_code=204)
def delete_flashcards(flashcards_id: FlashcardsId, house: HouseDep, tenant: TenantDep) -> None:
    with house.db.write() as session:
        row = scope.find(session, tables.Flashcards, tenant, flashcards_id)
        if job_id := jobs.needed_by(session, tenant, flashcards_id):
            raise Conflict(f"{job_id} still needs these cards: wait for it or cancel it")
        session.delete(row)
        blobs.let_go(session, tenant, [row.digest, row.sheet_digest])
