"""Every error that a caller can meet, as RFC 9457 problems with a stable `type`.

ServiceError
├── BadCursor            422  /problems/invalid
├── Invalid              422  /problems/invalid
├── Unauthorized         401  /problems/unauthorized
├── Foreign              403  /problems/foreign-host, /problems/foreign-origin
├── WrongScope           403  /problems/scope
├── ForeignPage          403  /problems/foreign-page
├── TooLarge             413  /problems/too-large
├── UnfitFile            422  /problems/unfit-file
├── OtherBody            409  /problems/idempotency-key-reused
├── TwinInFlight         409  /problems/idempotency-key-in-flight
├── OutOfRange           416  /problems/out-of-range
├── TooOften             429  /problems/rate-limit
├── DatabaseAway         503  /problems/database-away
└── DiskFull             507  /problems/disk-full
LedgerError (ledger.errors)
├── NotFound             404  /problems/not-found
├── NoRoom               403  /problems/quota
├── Conflict             409  /problems/conflict
├── Unfit                422  /problems/invalid
├── TooManyJobs          429  /problems/quota
├── Incomplete           409  /problems/upload-incomplete
├── Complete             409  /problems/upload-complete
├── WrongDigest          422  /problems/digest-mismatch
├── NoLinks              409  /problems/no-links
├── StoreAway            503  /problems/store-away
└── TrackerAway          503  /problems/tracker-away
"""

import errno
from collections.abc import Sequence
from typing import Self

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import compile_path

from flashcards.contract.resources import FieldProblem, Problem
from ledger import problems
from ledger.errors import LedgerError, StoreAway, TooManyJobs, TrackerAway

MEDIA_TYPE = "application/problem+json"
MAKE_ROOM = "Nothing was kept. Make room and send it again."
log = structlog.get_logger()


class ServiceError(Exception):
    status = 500
    slug = "internal"
    title = "Something went wrong on our side"

    def __init__(self, detail: str, errors: list[FieldProblem] | None = None, headers: dict[str, str] | None = None):
        super().__init__(detail)
        self.detail = detail
        self.errors = errors
        self.headers = headers or {}


class Invalid(ServiceError):
    status = 422
    slug = "invalid"
    title = problems.NO_SENSE

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, [FieldProblem(field=field, message=message)])


class BadCursor(Invalid):
    def __init__(self) -> None:
        super().__init__("query.cursor", "this cursor did not come from a page of this list")


class Foreign(ServiceError):
    status = 403

    def __init__(self, what: str, value: str) -> None:
        self.slug = f"foreign-{what}"
        self.title = f"This {what} is not served here"
        super().__init__(f"{what} {value!r} is not one of this service's; FLASHCARDS_ALLOWED_HOSTS adds names")


class Unauthorized(ServiceError):
    status = 401
    slug = "unauthorized"
    title = "A key is needed"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="flashcards"'})


class WrongScope(ServiceError):
    status = 403
    slug = "scope"
    title = "This key does not open that"


class ForeignPage(ServiceError):
    status = 403
    slug = "foreign-page"
    title = "That came from another page"


class TooOften(ServiceError):
    status = 429
    slug = "rate-limit"
    title = "Too many requests with this key"


class DatabaseAway(ServiceError):
    status = 503
    slug = "database-away"
    title = "The database does not answer"

    @classmethod
    def from_error(cls, error: SQLAlchemyError) -> Self:
        log.warning("database.away", error=str(getattr(error, "orig", error)))
        detail = "Ask again in a moment, with the same Idempotency-Key if there was one."
        return cls(detail, headers={"Retry-After": "1"})


class TooLarge(ServiceError):
    status = 413
    slug = "too-large"
    title = "The body is larger than allowed"


class UnfitFile(ServiceError):
    status = 422
    slug = "unfit-file"

    def __init__(self, title: str, detail: str) -> None:
        self.title = title
        super().__init__(detail, [FieldProblem(field="body", message=detail)])


class OtherBody(ServiceError):
    status = 409
    slug = "idempotency-key-reused"
    title = "This Idempotency-Key belongs to another request"


class TwinInFlight(ServiceError):
    status = 409
    slug = "idempotency-key-in-flight"
    title = "A request with this Idempotency-Key is being answered right now"


class OutOfRange(ServiceError):
    status = 416
    slug = "out-of-range"
    title = "The file is shorter than that"

    def __init__(self, size: int) -> None:
        super().__init__(f"the file has {size:,} bytes", headers={"Content-Range": f"bytes */{size}"})


class DiskFull(ServiceError):
    status = 507
    slug = "disk-full"
    title = "The disk is full"


#: Seconds after which asking again makes sense.
RETRY_AFTER: dict[type[LedgerError], int] = {TooManyJobs: 10, StoreAway: 5, TrackerAway: 10}


def problem(
    request: Request,
    status: int,
    slug: str,
    title: str,
    detail: str,
    errors: Sequence[FieldProblem] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    return _answer(problems.problem(status, slug, title, detail, errors, instance=_instance(request)), headers)


def _answer(body: Problem, headers: dict[str, str] | None = None) -> Response:
    return Response(body.model_dump_json(exclude_none=True), body.status, headers, MEDIA_TYPE)


def _instance(request: Request) -> str | None:
    return request.scope.get("request_id")


def respond(request: Request, error: ServiceError) -> Response:
    return problem(request, error.status, error.slug, error.title, error.detail, error.errors, error.headers)


def install(app: FastAPI) -> None:
    @app.exception_handler(ServiceError)
    async def _service(request: Request, error: ServiceError) -> Response:
        return respond(request, error)

    @app.exception_handler(LedgerError)
    async def _ledger(request: Request, error: LedgerError) -> Response:
        seconds = RETRY_AFTER.get(type(error))
        headers = {"Retry-After": str(seconds)} if seconds else None
        return _answer(problems.of(error, instance=_instance(request)), headers)

    @app.exception_handler(OperationalError)
    @app.exception_handler(InterfaceError)
    @app.exception_handler(PoolTimeout)
    async def _database(request: Request, error: SQLAlchemyError) -> Response:
        """It restarts, is locked for long or has no room; who asks again with its Idempotency-Key loses nothing."""
        full = "disk is full" in str(error) or "No space left" in str(error)
        return respond(request, DiskFull(MAKE_ROOM) if full else DatabaseAway.from_error(error))

    @app.exception_handler(RequestValidationError)
    async def _validation(request: Request, error: RequestValidationError) -> Response:
        return _answer(problems.of_fields(error.errors(), instance=_instance(request)))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        slug, title = HTTP_WORDS.get(error.status_code, ("http", "The request was refused"))
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_methods(app, request.url.path)) or headers.get("Allow", "")
        return problem(request, error.status_code, slug, title, str(error.detail), headers=headers)

    @app.exception_handler(ClientDisconnect)
    async def _gone(_: Request, __: ClientDisconnect) -> Response:
        """Nobody is there to read it; the log's name for this is nginx's."""
        return Response(status_code=499)

    @app.exception_handler(OSError)
    async def _os(request: Request, error: OSError) -> Response:
        if error.errno != errno.ENOSPC:
            raise error
        return respond(request, DiskFull(MAKE_ROOM))

    @app.exception_handler(Exception)
    async def _defect(request: Request, error: Exception) -> Response:
        log.error("request.defect", path=request.url.path, exc_info=error)
        detail = "The defect is in our log under this request's id."
        return problem(request, 500, "internal", ServiceError.title, detail)


HTTP_WORDS = {
    400: ("bad-request", "The request could not be read"),
    404: ("not-found", "There is no such thing"),
    405: ("method-not-allowed", "This path does not take that method"),
    413: ("too-large", "The body is larger than allowed"),
}


def _methods(app: FastAPI, path: str) -> list[str]:
    """Every method of this path: the framework names those of the first route only."""
    for template, operations in app.openapi()["paths"].items():
        if compile_path(template)[0].match(path):
            return [method.upper() for method in operations]
    return []


def first_message(error: ValidationError) -> str:
    return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
