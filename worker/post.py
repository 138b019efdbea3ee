"""`python -m worker.post`: a courier as a process of its own, where workers have no way out of their network."""

import asyncio
import signal
import threading
from pathlib import Path

from flashcards.leash import leave_with_parent
from ledger.db import Database
from ledger.logs import configure_logs
from ledger.schema import ensure_schema
from ledger.settings import Settings, load_settings
from worker.courier import Courier

SIGN_SECONDS = 5


def run() -> None:
    leave_with_parent()
    settings, closing = load_settings(), threading.Event()
    configure_logs(settings)
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    db = Database(settings.database)
    ensure_schema(db)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: closing.set())
    asyncio.run(_run(Courier(db, settings, closing), sign_of_life(settings)))
    db.close()


async def _run(courier: Courier, sign: Path) -> None:
    """The sign of life comes from the loop that delivers: where that stands still, it stays away."""
    showing = asyncio.create_task(_show_life(sign))
    await courier.keep_delivering()
    showing.cancel()
    sign.unlink(missing_ok=True)


async def _show_life(sign: Path) -> None:
    while True:
        sign.touch()
        await asyncio.sleep(SIGN_SECONDS)


def sign_of_life(settings: Settings) -> Path:
    return settings.home / "courier-alive"


if __name__ == "__main__":
    run()
