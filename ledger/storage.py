"""What a tenant keeps: how much of what kind, which files, for whom, and until when."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, case, func, or_, select, tuple_
from sqlalchemy.orm import Session

from ledger.blobs import REFERENCES
from ledger.settings import Settings
from ledger.tables import Blob

DAY = 86400
NAMES_AT_MOST = 100
UNREFERENCED = "unreferenced"
Mark = tuple[float, str]


@dataclass(frozen=True)
class Sum:
    count: int
    bytes: int


@dataclass
class Keepers:
    """Who refers to a file. The file stays as long as the last of them does."""

    names: list[str] = field(default_factory=list)
    endless: bool = False
    until: float = 0.0

    def add(self, name: str, until: float | None) -> None:
        self.names.append(name)
        self.endless = self.endless or until is None
        self.until = max(self.until, until or 0.0)


def sums(session: Session, tenant: str) -> tuple[Sum, dict[str, Sum]]:
    """Of all files, and by kind."""
    conditions = {kind: _is_kept_as(kind, tenant) for kind in REFERENCES}
    conditions[UNREFERENCED] = ~or_(*conditions.values())
    columns = [_count(), _bytes()]
    for condition in conditions.values():
        columns += [_count(condition), _bytes(condition)]
    total, *kinds = _pairs(session.execute(select(*columns).where(Blob.tenant == tenant)).one())
    return total, dict(zip(conditions, kinds, strict=True))


def page(session: Session, tenant: str, limit: int, before: Mark | None) -> tuple[Sequence[Blob], Mark | None]:
    """Newest first, and where to go on from if there are more."""
    place = tuple_(Blob.created_at, Blob.digest)
    statement = select(Blob).where(Blob.tenant == tenant)
    if before is not None:
        statement = statement.where(place < before)
    ordered = statement.order_by(Blob.created_at.desc(), Blob.digest.desc())
    rows = session.scalars(ordered.limit(limit + 1)).all()
    more = len(rows) > limit
    rows = rows[:limit]
    return rows, (rows[-1].created_at, rows[-1].digest) if more else None


def keepers(session: Session, settings: Settings, tenant: str, digests: Sequence[str]) -> dict[str, Keepers]:
    found: dict[str, Keepers] = defaultdict(Keepers)
    for kind, references in REFERENCES.items():
        longer = settings.resume_point_days * DAY if kind == "resume_points" else 0.0
        for each in references:
            statement = select(each.digest, each.name, each.until).where(each.tenant == tenant, *each.where)
            for digest, name, until in session.execute(statement.where(each.digest.in_(digests)).order_by(each.name)):
                found[digest].add(name, None if until is None else until + longer)
    return found


def expires_at(settings: Settings, row: Blob, kept_by: Keepers) -> float | None:
    if not kept_by.names:
        return max(row.created_at, row.touched_at + settings.collect_grace_seconds)
    return None if kept_by.endless else kept_by.until


def _is_kept_as(kind: str, tenant: str) -> ColumnElement[bool]:
    """Each list of digests is made once, and not looked up file by file: all files of the tenant are counted here."""
    lists = [
        select(each.digest).where(each.tenant == tenant, each.digest.is_not(None), *each.where)
        for each in REFERENCES[kind]
    ]
    return or_(*(Blob.digest.in_(digests) for digests in lists))


def _count(condition: ColumnElement[bool] | None = None) -> ColumnElement[int]:
    return func.count() if condition is None else func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _bytes(condition: ColumnElement[bool] | None = None) -> ColumnElement[int]:
    counted = Blob.size if condition is None else case((condition, Blob.size), else_=0)
    return func.coalesce(func.sum(counted), 0)


def _pairs(numbers: Sequence[int]) -> list[Sum]:
    values = [int(number) for number in numbers]
    return [Sum(count, size) for count, size in zip(values[::2], values[1::2], strict=True)]
