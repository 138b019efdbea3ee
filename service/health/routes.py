import structlog
from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import Field
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from flashcards.contract.base import Record
from ledger import workers
from service.deps import House, HouseDep

log = structlog.get_logger()
router = APIRouter(tags=["health"])


class Health(Record):
    status: str = "ok"


class Readiness(Record):
    ready: bool
    checks: dict[str, bool]
    workers: dict[str, int] = Field(description="how many of each queue gave a sign of life")


@router.get("/healthz")
async def is_alive() -> Health:
    return Health()


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
def is_ready(house: HouseDep) -> Response:
    """Database, broker, store, and a worker that gave a sign of life."""
    alive = _workers(house)
    checks = {
        "database": _database(house),
        "broker": house.doorbell.is_reachable(),
        "store": house.store.is_reachable(),
        "worker": bool(alive),
    }
    body = Readiness(ready=all(checks.values()), checks=checks, workers=alive)
    return Response(body.model_dump_json(), 200 if body.ready else 503, None, "application/json")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def get_metrics(house: HouseDep) -> Response:
    return Response(generate_latest(house.figures), media_type=CONTENT_TYPE_LATEST)


def _database(house: House) -> bool:
    try:
        with house.db.read() as session:
            session.execute(text("SELECT 1"))
    except DBAPIError as error:
        log.warning("database.unreachable", error=str(error.orig))
        return False
    return True


def _workers(house: House) -> dict[str, int]:
    try:
        return workers.alive(house.db)
    except DBAPIError:
        return {}
