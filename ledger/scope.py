"""Every query that a user causes starts here: a statement that already sees one tenant only."""

from typing import TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from ledger.errors import NotFound
from ledger.tables import Dataset, Flashcards, Job, Model

Owned = TypeVar("Owned", Model, Dataset, Flashcards, Job)


def scoped(table: type[Owned], tenant: str) -> Select[Owned]:
    return select(table).where(table.tenant == tenant)


def find(session: Session, table: type[Owned], tenant: str, id: str) -> Owned:
    row = session.scalar(scoped(table, tenant).where(table.id == id))
    if row is None:
        raise NotFound(table.__tablename__, id)
    return row
