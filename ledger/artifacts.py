"""Files that jobs made, under the names that users know them by."""

from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ledger.store import Kept
from ledger.tables import Artifact

RESUME_POINTS_KEPT = 2


@dataclass(frozen=True)
class Product:
    """A kept file under its name."""

    name: str
    media_type: str
    kept: Kept
    shows_data: bool = False


def record_products(session: Session, job_id: str, attempt: int, products: list[Product]) -> None:
    """What this attempt made takes the place of what an earlier one left."""
    session.execute(delete(Artifact).where(Artifact.job_id == job_id, Artifact.role == "product"))
    for product in products:
        session.add(_row(job_id, attempt, "product", product))


def record_resume_point(session: Session, job_id: str, attempt: int, point: Product) -> None:
    session.merge(_row(job_id, attempt, "resume_point", point))
    session.flush()
    for old in resume_points(session, job_id)[RESUME_POINTS_KEPT:]:
        session.delete(old)


def forget_resume_points(session: Session, job_id: str) -> None:
    session.execute(delete(Artifact).where(Artifact.job_id == job_id, Artifact.role == "resume_point"))


def forget_products(session: Session, job_id: str) -> list[str]:
    """The digests of the files that they were."""
    gone = delete(Artifact).where(Artifact.job_id == job_id, Artifact.role == "product").returning(Artifact.digest)
    return list(session.scalars(gone.execution_options(synchronize_session=False)))


def resume_points(session: Session, job_id: str) -> list[Artifact]:
    """Newest first: their names carry the step."""
    statement = select(Artifact).where(Artifact.job_id == job_id, Artifact.role == "resume_point")
    return list(session.scalars(statement.order_by(Artifact.name.desc())))


def products_of(session: Session, job_id: str) -> list[Artifact]:
    statement = select(Artifact).where(Artifact.job_id == job_id, Artifact.role == "product").order_by(Artifact.name)
    return list(session.scalars(statement))


def digests_of(session: Session, job_id: str) -> list[str]:
    return list(session.scalars(select(Artifact.digest).where(Artifact.job_id == job_id)))


def _row(job_id: str, attempt: int, role: str, product: Product) -> Artifact:
    return Artifact(
        job_id=job_id,
        name=product.name,
        role=role,
        media_type=product.media_type,
        digest=product.kept.digest,
        size=product.kept.size,
        attempt=attempt,
        shows_data=product.shows_data,
    )
