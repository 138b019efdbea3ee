"""The versions of a learner, in the order in which one led to the next."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from ledger.tables import Learner, Version


def chain(session: Session, learner: Learner) -> list[Version]:
    """The versions that led to the head, from the first on."""
    return chain_to(session, learner.id, learner.version)


def chain_to(session: Session, learner_id: str, number: int | None) -> list[Version]:
    """Those that led to this one, itself the last."""
    rows = {row.number: row for row in session.scalars(select(Version).where(Version.learner_id == learner_id))}
    found: list[Version] = []
    while number is not None:
        found.append(rows[number])
        number = rows[number].parent
    return found[::-1]
