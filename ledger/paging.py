"""Keyset pages. Ids are time-ordered and versions numbered: the last of a page is all the next needs."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import Select
from sqlalchemy.orm import Session

Row = TypeVar("Row")
Mark = TypeVar("Mark", str, int)


def page(
    session: Session,
    statement: Select[Row],
    id_column: Any,
    limit: int,
    last: Mark | None,
    oldest_first: bool = False,
) -> tuple[Sequence[Row], Mark | None]:
    """The rows after the last one seen, and the id to go on from if there are more."""
    if last is not None:
        statement = statement.where(id_column > last if oldest_first else id_column < last)
    order = id_column.asc() if oldest_first else id_column.desc()
    rows = session.scalars(statement.order_by(order).limit(limit + 1)).all()
    more = len(rows) > limit
    rows = rows[:limit]
    return rows, getattr(rows[-1], id_column.key) if more else None
