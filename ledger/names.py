"""What things are called, by their ids."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from ledger.tables import Dataset, Flashcards, Learner, Model

Named = type[Model] | type[Dataset] | type[Flashcards] | type[Learner]
NAMED: dict[str, Named] = {"model": Model, "dataset": Dataset, "flashcards": Flashcards, "learner": Learner}


def names_of(session: Session, tenant: str, ids: Iterable[str]) -> dict[str, str]:
    """Of those that are still there and have a name."""
    wanted, names = set(ids), dict[str, str]()
    for kind, table in NAMED.items():
        mine = sorted(id for id in wanted if id.startswith(f"{kind}_"))
        if mine:
            owned = select(table.id, table.name).where(table.tenant == tenant, table.id.in_(mine))
            names |= {id: name for id, name in session.execute(owned) if name}
    return names
