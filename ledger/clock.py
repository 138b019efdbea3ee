"""Time is the database's: leases made by one machine are judged by another, and only one clock may decide."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement


class now(FunctionElement[float]):
    """Seconds since 1970, by the database's clock."""

    type = Float()
    inherit_cache = True


@compiles(now, "sqlite")
def _sqlite(element: Any, compiler: Any, **kwargs: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _postgresql(element: Any, compiler: Any, **kwargs: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


def as_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(round(seconds, 3), UTC)


def maybe_datetime(seconds: float | None) -> datetime | None:
    return None if seconds is None else as_datetime(seconds)
