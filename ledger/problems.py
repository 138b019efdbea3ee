"""What was refused, as a problem (RFC 9457): the same words by HTTP and by the queue."""

from collections.abc import Iterable, Mapping
from typing import Any

from flashcards.contract.resources import FieldProblem, Problem
from ledger.errors import (
    Complete,
    Conflict,
    Incomplete,
    LedgerError,
    NoLinks,
    NoRoom,
    NotFound,
    StoreAway,
    TooManyJobs,
    TrackerAway,
    Unfit,
    WrongDigest,
)

NO_SENSE = "The request does not make sense"
LEDGER_ERRORS: dict[type[LedgerError], tuple[int, str, str]] = {
    NotFound: (404, "not-found", "There is no such thing"),
    Conflict: (409, "conflict", "That cannot be done now"),
    Unfit: (422, "invalid", "The request does not go with what exists"),
    TooManyJobs: (429, "quota", "This key's quota of jobs is used up"),
    NoRoom: (403, "quota", "This key's quota of storage is used up"),
    Incomplete: (409, "upload-incomplete", "Parts of this upload are missing"),
    Complete: (409, "upload-complete", "This upload has become something already"),
    WrongDigest: (422, "digest-mismatch", "What came is not what was announced"),
    NoLinks: (409, "no-links", "The store of this service gives no links"),
    StoreAway: (503, "store-away", "The store of files does not answer"),
    TrackerAway: (503, "tracker-away", "The tracking server does not answer"),
}


def problem(
    status: int, slug: str, title: str, detail: str, errors: Iterable[FieldProblem] | None = None, **more: Any
) -> Problem:
    listed = None if errors is None else list(errors)
    return Problem(type=f"/problems/{slug}", title=title, status=status, detail=detail, errors=listed, **more)


def of(error: LedgerError, place: str = "body", **more: Any) -> Problem:
    """`place` is where the spec was: the fields are named from there."""
    status, slug, title = LEDGER_ERRORS[type(error)]
    fields = [FieldProblem(field=f"{place}.{error.field}", message=error.detail)] if isinstance(error, Unfit) else None
    return problem(status, slug, title, error.detail, fields, **more)


def of_fields(entries: Iterable[Mapping[str, Any]], place: tuple[str, ...] = (), **more: Any) -> Problem:
    """What pydantic found wrong, entry by entry."""
    errors = [_field(entry, place) for entry in entries]
    detail = "; ".join(f"{entry.field}: {entry.message}" for entry in errors[:5])
    return problem(422, "invalid", NO_SENSE, detail, errors, **more)


def _field(entry: Mapping[str, Any], place: tuple[str, ...]) -> FieldProblem:
    return FieldProblem(field=".".join(str(part) for part in (*place, *entry["loc"])), message=str(entry["msg"]))
