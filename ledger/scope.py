"""Every query that a user causes starts here: a statement that already sees one tenant only."""

from functools import cache
from typing import TypeVar

from sqlalchemy import ColumnElement, Select, bindparam, select
from sqlalchemy.orm import Session

from ledger.errors import NotFound
from ledger.tables import Dataset, Flashcards, Job, Learner, Model, Upload, Webhook

Owned = TypeVar("Owned", Model, Dataset, Flashcards, Learner, Job, Upload, Webhook)


def scoped(table: type[Owned], tenant: str) -> Select[Owned]:
    return select(table).where(table.tenant == tenant)


def few(table: type[Owned], tenant: str, condition: ColumnElement[bool]) -> Select[Owned]:
    """Where a condition names few rows: they are found by its own index, and the tenant is looked at in each.

    SQLite keeps no figures on its tables, and would walk through all that the tenant has, in the order of a page.
    """
    return select(table).where(condition, table.tenant.concat("") == tenant)


@cache
def _find(table: type[Owned]) -> Select[Owned]:
    """Built once: putting a statement together costs more than running it."""
    return select(table).where(table.tenant == bindparam("tenant"), table.id == bindparam("id"))


def find(session: Session, table: type[Owned], tenant: str, id: str) -> Owned:
    row: Owned | None = session.scalar(_find(table), {"tenant": tenant, "id": id})
    if row is None:
        raise NotFound(table.__tablename__, id)
    return row
