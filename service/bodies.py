"""A body becomes a file: streamed to the spool, counted and hashed on the way, never held in memory."""

import asyncio
import hashlib
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import Request
from uuid_utils import uuid4

from ledger.settings import Settings
from service.errors import Invalid, TooLarge
from service.idempotency import HOLD_ON_SECONDS

BATCH = 1024**2


@dataclass(frozen=True)
class Upload:
    path: Path
    digest: str
    size: int
    #: Of the file as it came, where this one was made from it.
    uploaded_digest: str | None = None


@asynccontextmanager
async def received(request: Request, settings: Settings, hold_on: Callable[[], None]) -> AsyncIterator[Upload]:
    """The file is gone when the block ends, unless the store took it. A client that hangs up leaves nothing."""
    async with spooled(request, settings, settings.max_upload_bytes, hold_on) as upload:
        yield upload


@asynccontextmanager
async def spooled(
    request: Request, settings: Settings, limit: int, hold_on: Callable[[], None]
) -> AsyncIterator[Upload]:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge(f"{int(declared):,} bytes were announced; {limit:,} are allowed")
    path = settings.spool_folder / uuid4().hex
    try:
        yield await _receive(request, path, limit, hold_on)
    finally:
        with suppress(FileNotFoundError):
            path.unlink()


async def _receive(request: Request, path: Path, limit: int, hold_on: Callable[[], None]) -> Upload:
    """The disk works in a thread while the next batch comes in: one batch is on its way, one is being written."""
    digest = hashlib.sha256()
    size = 0
    batch = bytearray()
    writing: asyncio.Future[Any] | None = None
    held_on_at = time.monotonic()
    loop = asyncio.get_running_loop()

    def write(data: bytes) -> None:
        digest.update(data)
        file.write(data)

    file = path.open("wb", buffering=0)
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise TooLarge(f"more than the {limit:,} bytes that are allowed")
            batch += chunk
            if len(batch) >= BATCH:
                if writing is not None:
                    await writing
                writing = loop.run_in_executor(None, write, bytes(batch))
                batch.clear()
            if time.monotonic() - held_on_at > HOLD_ON_SECONDS:
                held_on_at = time.monotonic()
                await asyncio.to_thread(hold_on)
        if writing is not None:
            await writing
            writing = None
        await asyncio.to_thread(write, bytes(batch))
    finally:
        if writing is not None:
            with suppress(OSError):
                await asyncio.shield(writing)
        file.close()
    if size == 0:
        raise Invalid("body", "the body is empty: send the file itself, for example with curl -T file")
    return Upload(path=path, digest=digest.hexdigest(), size=size)


def clear_spool(settings: Settings) -> None:
    """What a killed API left behind. Files are named after nothing, so their age is all that tells."""
    settings.spool_folder.mkdir(parents=True, exist_ok=True)
    for path in settings.spool_folder.iterdir():
        if settings.embedded or time.time() - path.stat().st_mtime > 86400:
            path.unlink() if path.is_file() else shutil.rmtree(path)
