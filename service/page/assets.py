"""Scripts, styles and the icon, read once. Their address carries a digest of them all, so a browser may keep them."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Asset:
    content: bytes
    media_type: str


@dataclass(frozen=True)
class Assets:
    """One digest for the whole tree: a module names its neighbours by relative paths, and stays among its own age."""

    digest: str
    files: dict[str, Asset]


@cache
def load() -> Assets:
    digest, files = hashlib.sha256(), {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES:
            name, content = path.relative_to(FOLDER).as_posix(), path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
            files[name] = Asset(content, TYPES[path.suffix])
    return Assets(digest.hexdigest()[:16], files)
