"""A bundle as the answer to a request."""

import hashlib
from typing import Annotated

from fastapi import Header, Response
from fastapi.responses import StreamingResponse

from flashcards.contract.ancestry import Ancestry, BundledMetrics, Recipes
from flashcards.contract.bundle import CARD, LINEAGE, MANIFEST, METRICS, MOST_TEXT, RECIPES
from ledger import bundles
from ledger.bundles import Packed
from ledger.errors import Conflict, NotFound
from service.bundles.card import card
from service.bundles.zip import zip_chunks
from service.deps import House
from service.downloads import Answers, conflict

MEDIA_TYPE = "application/zip"
IfNoneMatch = Annotated[str | None, Header(max_length=1000, description="ETags of what you have")]
ANSWERS: Answers = {
    200: {"content": {MEDIA_TYPE: {}}},
    304: {"description": "what you have is what there is"},
    **conflict("a part of it is larger than a bundle takes"),
}


def answer(house: House, tenant: str, packed: Packed, name: str, if_none_match: str | None) -> Response:
    packed = bundles.with_card(packed, _card(packed))
    manifest = packed.manifest.model_dump_json(indent=2).encode()
    # Of the manifest, which has the digests of all the rest; weak, for it is not the digest of the zip.
    tag = f'W/"bundle-{hashlib.sha256(manifest).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if tag in [each.strip() for each in (if_none_match or "").split(",")]:
        return Response(status_code=304, headers=headers)
    _check_there(house, tenant, packed)
    headers["Content-Disposition"] = f'attachment; filename="{name}"'
    texts = {MANIFEST: manifest, **dict(sorted(packed.packing.texts.items()))}
    _check_sizes(texts)
    stored = {file: kept.digest for file, kept in packed.packing.stored.items()}
    chunks = zip_chunks(house.store, tenant, texts, stored, packed.manifest.made_at)
    return StreamingResponse(chunks, 200, headers, MEDIA_TYPE)


def _card(packed: Packed) -> str:
    texts = packed.packing.texts
    recipes = Recipes.model_validate_json(texts[RECIPES]).flashcards if RECIPES in texts else []
    metrics = BundledMetrics.model_validate_json(texts[METRICS]).jobs
    return card(packed.manifest, Ancestry.model_validate_json(texts[LINEAGE]), recipes, metrics)


def _check_sizes(texts: dict[str, bytes]) -> None:
    """What nobody could take in is not given out."""
    for name, text in texts.items():
        if name != CARD and len(text) > MOST_TEXT:
            raise Conflict(f"{name} would have {len(text):,} bytes, and {MOST_TEXT:,} are the most that a bundle takes")


def _check_there(house: House, tenant: str, packed: Packed) -> None:
    """Once the answer has begun, nothing can be said any more."""
    for name, kept in packed.packing.stored.items():
        try:
            house.store.size(tenant, kept.digest)
        except FileNotFoundError:
            raise NotFound("file", name) from None
