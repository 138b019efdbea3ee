import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy.orm import Session

from flashcards.contract.base import Name
from flashcards.contract.bundle import BundleTaken
from ledger import imports, learners
from ledger.imports import Brought
from ledger.store import Kept
from service import views
from service.bodies import Upload
from service.deps import HouseDep, IdempotencyKey, PrincipalDep
from service.files.unpack import BundleFacts, BundleQuestion
from service.intake import FILE_OR_UPLOAD, InParts, take_in

router = APIRouter(prefix="/v1/bundles", tags=["bundles"])
CHUNK = 1024**2


@router.post("", status_code=201, response_model=BundleTaken, openapi_extra=FILE_OR_UPLOAD)
async def create_from_bundle(
    request: Request,
    house: HouseDep,
    principal: PrincipalDep,
    name: Annotated[Name | None, Query(description="what people call it; as at home if unsaid")] = None,
    upload: InParts = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Take in a model or a learner of another installation. The body is the zip that its `/bundle` route gave out.

    Every digest is checked before the answer. What it was made from is told by `/lineage`, under `imported`.
    """

    def record(session: Session, upload: Upload, facts: BundleFacts) -> BundleTaken:
        brought = _brought(upload, facts)
        if facts.manifest.model is not None:
            return BundleTaken(model=views.model(imports.take_model(session, principal.tenant, name, brought)))
        row = imports.take_learner(session, principal.tenant, name, brought)
        return BundleTaken(learner=views.learner(row, learners.heads(session, [row])[row.id]))

    return await take_in(
        request, house, principal, idempotency_key, BundleQuestion(), record, parts=_parts, upload_id=upload
    )


def _brought(upload: Upload, facts: BundleFacts) -> Brought:
    told = facts.lineage, facts.recipes.flashcards, facts.metrics.jobs, facts.capsules
    return Brought(upload.digest, facts.manifest, *told)


def _parts(upload: Upload, facts: BundleFacts, folder: Path) -> Mapping[Kept, Path]:
    """Entries are stored, so their bytes are copied as they lie there: nothing of the zip is read for it."""
    folder.mkdir(mode=0o700)
    found: dict[Kept, Path] = {}
    with upload.path.open("rb") as bundle:
        for name, begin in facts.places.items():
            file = facts.manifest.files[name]
            path = folder / file.digest
            if not path.exists():
                bundle.seek(begin)
                _copy(bundle, path, file.size, file.digest)
            found[Kept(file.digest, file.size)] = path
    return found


def _copy(source: BinaryIO, path: Path, size: int, announced: str) -> None:
    digest = hashlib.sha256()
    with path.open("xb") as target:
        for begin in range(0, size, CHUNK):
            chunk = source.read(min(CHUNK, size - begin))
            digest.update(chunk)
            target.write(chunk)
    if digest.hexdigest() != announced:
        raise RuntimeError("the spool changed under our hands")
