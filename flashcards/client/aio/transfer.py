"""Files on their way, a chunk at a time."""

import hashlib
from collections.abc import AsyncIterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import httpx

from flashcards.client.files import CHUNK, Progress, target
from flashcards.errors import UnexpectedAnswer

SHA256_DIGITS = 64


async def chunks(file: BinaryIO, size: int, progress: Progress | None) -> AsyncIterator[bytes]:
    sent = 0
    while chunk := file.read(min(CHUNK, size - sent)):
        yield chunk
        sent += len(chunk)
        if progress is not None:
            progress(sent, size)


async def save(answer: httpx.Response, to: str | PathLike[str], name: str, announced: str) -> Path:
    """Under a temporary name until it is whole and has the digest that the service announced."""
    path = target(to, name)
    digest = hashlib.sha256()
    part = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    try:
        with part.open("wb") as file:
            async for chunk in answer.aiter_bytes(CHUNK):
                digest.update(chunk)
                file.write(chunk)
        if len(announced) == SHA256_DIGITS and announced != digest.hexdigest():
            raise UnexpectedAnswer(f"{path.name} was damaged on the way: its digest is not the announced one")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path
