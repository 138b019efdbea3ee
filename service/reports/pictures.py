"""What a job drew, inside the page that shows it."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

from flashcards.contract.resources import Artifact
from ledger.store import Store

PICTURE_TYPE = "image/png"
#: Of all pictures together: a report is to be sent by mail. Those beyond are named.
BYTES_AT_MOST = 8 * 1024**2
CAPTIONS = (
    (r"sheet\.png", "Cards, as the job left them"),
    (r"source\.png", "The same cards before the first pass"),
    (r"cards\.png", "Cards that were replayed"),
    (r"reconstructions\.png", "Images above, what the network makes of them below"),
    (r"reconstructions-(\d+)\.png", r"Task \1: images above, what the network makes of them below"),
    (r"neighbours\.png", "Cards, and the nearest images below them"),
    (r"strip\.png", "Cards pass by pass"),
    (r"curves\.png", "Steps and FLSD over the passes"),
    (r"latents\.png", "Latents of cards and images"),
    (r"matrix\.png", "The error on each task after each task"),
    (r"forgetting\.png", "What was forgotten as the tasks went on"),
    (r"comparison\.png", "Strategies beside each other"),
    (r"matrices\.png", "The matrix of each strategy"),
    (r"confusion\.png", "Classes as they are, and as the network says"),
    (r"calibration\.png", "How often it is right, by how sure it is"),
)
#: Made of small images, every pixel of which is to be seen; the others are drawings.
TILES = re.compile(r"sheet|source|cards|reconstructions|neighbours")


@dataclass(frozen=True)
class Picture:
    name: str
    caption: str
    source: str | None  # None: it is too large, or no longer kept
    is_tiled: bool


def pictures(store: Store, tenant: str, artifacts: Sequence[Artifact]) -> list[Picture]:
    found, room = [], BYTES_AT_MOST
    for artifact in artifacts:
        if artifact.media_type != PICTURE_TYPE:
            continue
        content = _read(store, tenant, artifact) if artifact.size <= room else None
        room -= len(content or b"")
        source = None if content is None else f"data:{PICTURE_TYPE};base64,{base64.b64encode(content).decode()}"
        found.append(Picture(artifact.name, caption(artifact.name), source, bool(TILES.match(artifact.name))))
    return found


def caption(name: str) -> str:
    for pattern, words in CAPTIONS:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, words, name)
    return name


def _read(store: Store, tenant: str, artifact: Artifact) -> bytes | None:
    try:
        return store.read(tenant, artifact.digest, 0, artifact.size)
    except FileNotFoundError:
        return None
