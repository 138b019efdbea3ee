from pathlib import Path

import structlog
from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from flashcards.contract.base import Record
from ledger import workers
from service import telemetry
from service.deps import House, HouseDep

log = structlog.get_logger()
router = APIRouter(tags=["health"])
PAGE = Path(__file__).parent.parent / "page" / "index.html"
CONTENT_POLICY = (
    "default-src 'none'; img-src 'self' data:; connect-src 'self'; style-src 'unsafe-inline'; script-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FRESH = {"Cache-Control": "no-cache"}


class Health(Record):
    status: str = "ok"


class Readiness(Record):
    ready: bool
    checks: dict[str, bool]


@router.get("/healthz")
async def is_alive() -> Health:
    return Health()


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
def is_ready(house: HouseDep) -> Response:
    """Database, broker, store, and a worker that gave a sign of life."""
    checks = {
        "database": _database(house),
        "broker": house.doorbell.is_reachable(),
        "store": house.store.is_reachable(),
        "worker": _worker(house),
    }
    body = Readiness(ready=all(checks.values()), checks=checks)
    return Response(body.model_dump_json(), 200 if body.ready else 503, None, "application/json")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def get_metrics(house: HouseDep) -> Response:
    return Response(telemetry.scrape(house.db, house.settings.home), media_type=CONTENT_TYPE_LATEST)


@router.get("/", include_in_schema=False)
async def get_page() -> FileResponse:
    return FileResponse(PAGE, headers={**FRESH, "Content-Security-Policy": CONTENT_POLICY})


@router.get("/page.js", include_in_schema=False)
async def get_page_script() -> FileResponse:
    return FileResponse(PAGE.with_name("page.js"), media_type="text/javascript", headers=FRESH)


def _database(house: House) -> bool:
    try:
        with house.db.read() as session:
            session.execute(text("SELECT 1"))
    except DBAPIError as error:
        log.warning("database.unreachable", error=str(error.orig))
        return False
    return True


def _worker(house: House) -> bool:
    try:
        return bool(workers.alive(house.db))
    except DBAPIError:
        return False
