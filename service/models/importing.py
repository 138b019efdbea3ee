"""A model of the tracking server, on its way here: to `POST /v1/models:import` what a body is to an upload."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing

from fastapi import Request
from uuid_utils import uuid4

from flashcards.contract.tracking import ModelImport
from ledger.errors import TrackerRefused, Unfit
from ledger.settings import Settings
from ledger.store import hash_file
from ledger.tracking import may_use, open_tracker
from service.bodies import Upload
from service.idempotency import patiently
from service.intake import Arrival

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
            yield await patiently(fetch, hold_on)
        except TrackerRefused as refused:
            raise Unfit("mlflow", f"the tracking server does not give it: {refused.detail}") from None
        finally:
            path.unlink(missing_ok=True)

    return arrival


def called(asked: ModelImport) -> str:
    return (asked.name or asked.mlflow.removeprefix("models:/"))[:200]
