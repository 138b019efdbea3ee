"""A zip on its way out: entries go as they come from the store, and nothing is held but a chunk."""

import asyncio
import zipfile
from collections.abc import AsyncIterator
from datetime import datetime

from ledger.store import Store
from service.sink import Sink


async def zip_chunks(
    store: Store, tenant: str, texts: dict[str, bytes], stored: dict[str, str], at: datetime
) -> AsyncIterator[bytes]:
    """`stored` names digests. The same entries and the same time make the same bytes."""
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, text in texts.items():
            archive.writestr(_entry(name, at), text)
            yield sink.take()
        for name, digest in stored.items():
            with archive.open(_entry(name, at), "w", force_zip64=True) as member:
                reading = await asyncio.to_thread(store.open, tenant, digest)
                async for chunk in reading.chunks():
                    member.write(chunk)
                    yield sink.take()
    yield sink.take()


def _entry(name: str, at: datetime) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, at.timetuple()[:6])
    entry.external_attr = 0o644 << 16
    return entry
