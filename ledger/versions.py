"""The versions of a learner, in the order in which one led to the next."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from ledger.tables import Dataset, Learner, Version


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


def has_learnt(session: Session, versions: list[Version], dataset: Dataset) -> bool:
    """Is one of them from this very dataset, or from one that has the same images and is still there?"""
    ids = [version.dataset_id for version in versions if version.dataset_id is not None]
    twin = select(Dataset.id).where(Dataset.id.in_(ids), Dataset.digest == dataset.digest)
    return dataset.id in ids or session.scalar(twin.limit(1)) is not None
