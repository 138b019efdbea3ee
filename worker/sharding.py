"""What a capture has beside its model: how far it may be split, or the shards that it was split into."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flashcards.contract.shards import ShardResult
from flashcards.contract.specs import CaptureSpec, ShardSpec
from ledger import artifacts, parents, shards
from ledger.lifecycle import Claim
from ledger.tables import Artifact, Job
from worker.errors import CannotBegin
from worker.messages import StagedParts
from worker.station import Station

CARDS = "cards.npy"


def stage(station: Station, claim: Claim, spec: CaptureSpec, folder: Path) -> dict[str, Any]:
    with station.db.read() as session:
        children = parents.children(session, claim.job_id)
    if not children:
        return {"shards": shards.ways(station.db, claim, spec)}
    parts = _parts(station, claim, children, folder)
    return {"parts": parts, "threads": parts.recipe.threads}


def _parts(station: Station, claim: Claim, children: Sequence[Job], folder: Path) -> StagedParts:
    _check_made(children)
    with station.db.read() as session:
        made = [_cards(artifacts.products_of(session, child.id), child) for child in children]
        seconds = shards.seconds(session, claim.job_id)
    paths = [folder / f"{number}-{CARDS}" for number in range(len(made))]
    for path, artifact in zip(paths, made, strict=True):
        station.store.fetch(claim.tenant, artifact.digest, path)
    return StagedParts(
        recipe=ShardSpec.model_validate(children[0].spec).recipe,
        paths=[str(path) for path in paths],
        results=[ShardResult.model_validate(child.result) for child in children],
        seconds=seconds,
    )


def _check_made(children: Sequence[Job]) -> None:
    """Those that were stopped because of another do not say why."""
    lost = [child for child in children if child.state != "succeeded"]
    if not lost:
        return
    why = next((child for child in lost if child.error), lost[0])
    cards = f"cards {why.spec['first']} to {why.spec['first'] + why.spec['count'] - 1}"
    error = why.error or {"type": "shard-lost", "title": "A shard was not made", "detail": f"It {why.state}."}
    raise CannotBegin(error["type"], error["title"], f"{error['detail']} ({why.id}, the shard of {cards})")


def _cards(products: Sequence[Artifact], child: Job) -> Artifact:
    found = next((product for product in products if product.name == CARDS), None)
    if found is None:
        raise FileNotFoundError(f"the cards of {child.id}")
    return found
