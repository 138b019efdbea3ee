"""A model of the tracking server, on its way here: to `POST /v1/models:import` what a body is to an upload."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing

from fastapi import Request
from uuid_utils import uuid4

from flashcards.contract.tracking import ModelImport
from ledger.errors import TrackerRefused, Unfit
from ledger.settings import Settings
from ledger.store import hash_file
from ledger.tracking import may_use, open_tracker
from service.idempotency import HOLD_ON_SECONDS
from service.intake import Arrival
from service.uploads import Upload

NO_TRACKER = "this service has no tracking server for you: its operator sets FLASHCARDS_MLFLOW_URL"


def arriving(asked: ModelImport, tenant: str) -> Arrival:
    """The file is gone when the block ends, unless the store took it."""

    @asynccontextmanager
    async def arrival(_: Request, settings: Settings, hold_on: Callable[[], None]) -> AsyncIterator[Upload]:
        if not may_use(settings, tenant):
            raise Unfit("mlflow", NO_TRACKER)
        path = settings.spool_folder / uuid4().hex

        def fetch() -> Upload:
            most = settings.max_upload_bytes
            with closing(open_tracker(settings)) as tracker:
                tracker.fetch(asked.mlflow, path, tenant, asked.file, most)
            kept = hash_file(path)
            return Upload(path, kept.digest, kept.size)

        try:
            yield await _patiently(fetch, hold_on)
        except TrackerRefused as refused:
            raise Unfit("mlflow", f"the tracking server does not give it: {refused.detail}") from None
        finally:
            path.unlink(missing_ok=True)

    return arrival


async def _patiently(fetch: Callable[[], Upload], hold_on: Callable[[], None]) -> Upload:
    """A large model takes a while, and the Idempotency-Key is ours all that time."""
    fetching = asyncio.create_task(asyncio.to_thread(fetch))
    while not (await asyncio.wait({fetching}, timeout=HOLD_ON_SECONDS))[0]:
        await asyncio.to_thread(hold_on)
    return fetching.result()


def called(asked: ModelImport) -> str:
    return (asked.name or asked.mlflow.removeprefix("models:/"))[:200]
