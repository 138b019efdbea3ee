"""`python -m service.doctor`: would the service start here? Looks, and leaves nothing behind; findings as JSON.

Somebody waits for it: what speaks to servers is imported where there is a server to ask.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic_core import to_json

from flashcards.findings import LOW_DISK_BYTES, Finding, good, wrong
from ledger.settings import Settings, load_settings
from service.bind import check_bind, settle_port


def main() -> None:
    with redirect_stdout(sys.stderr):  # what libraries and logs say is not for the reader of the findings
        findings = list(look())
    print(to_json(findings).decode())


def look() -> Iterator[Finding]:
    try:
        settings = load_settings()
        check_bind(settings)
    except SystemExit as refused:
        yield wrong("settings", _words(refused), "put this variable right, or unset it")
        return
    yield good("settings", "they make sense")
    yield _home(settings.home)
    yield _disk(settings.home)
    yield from _port(settings)
    yield from _servers(settings)


def _words(refused: SystemExit) -> str:
    return str(refused.code).removeprefix("flashcards: ")


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())


def _home(home: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=_existing(home)):
            return good("home", f"{home} can be written" if home.exists() else f"{home} can be made")
    except OSError as error:
        return wrong(
            "home",
            f"{home} cannot be written ({error.strerror})",
            "FLASHCARDS_HOME picks another folder, or give yourself the right to write there",
        )


def _disk(home: Path) -> Finding:
    free = shutil.disk_usage(_existing(home)).free
    found = f"{free / 1024**3:,.1f} GiB free"
    return (
        good("disk", found)
        if free >= LOW_DISK_BYTES
        else wrong("disk", found, "make room, or pick another disk with FLASHCARDS_HOME")
    )


def _port(settings: Settings) -> Iterator[Finding]:
    where = f"{settings.host}:{settings.port}"
    if _is_in_use(settings.home):
        yield wrong(
            "lock",
            f"a `flashcards serve` runs on {settings.home}",
            "it is starting still, or listens elsewhere: its first lines say where, for FLASHCARDS_URL to say the same",
        )
        return
    try:
        settle_port(settings)
    except SystemExit as refused:
        yield wrong(
            "port",
            _words(refused),
            f"end what listens on {where}, or pick another port with FLASHCARDS_PORT and FLASHCARDS_URL",
        )
        return
    yield good("port", f"{where} is free")


def _is_in_use(home: Path) -> bool:
    if not (home / ".lock").exists():
        return False
    try:
        with FileLock(home / ".lock", timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def _servers(settings: Settings) -> Iterator[Finding]:
    """Those that the embedded default brings along are not looked for before it has run once."""
    if settings.database_url or (settings.home / "flashcards.db").exists():
        yield _database(settings)
    if settings.broker_url:
        yield _broker(settings)
    if settings.store_url:
        yield _store(settings)
    if settings.mlflow_url:
        yield _tracker(settings)


def _broker(settings: Settings) -> Finding:
    from ledger.doorbell import Doorbell

    return _answers("broker", Doorbell(settings).is_reachable())


def _database(settings: Settings) -> Finding:
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    from ledger.db import Database

    try:
        db = Database(settings.database)
        with db.read() as session:
            session.execute(text("SELECT 1"))
        db.close()
    except DBAPIError as error:
        return _answers("database", False, f" ({str(error.orig).splitlines()[0]})")
    except SQLAlchemyError:  # its words may hold the address, and that a password
        return wrong("database", "its address cannot be read", "write FLASHCARDS_DATABASE_URL like postgresql://...")
    return _answers("database", True)


def _store(settings: Settings) -> Finding:
    from ledger.store import Store

    try:
        return _answers("store", Store(settings.store).is_reachable())
    except SystemExit as refused:
        return wrong("store", _words(refused), "put FLASHCARDS_STORE_URL right, or unset it")


def _tracker(settings: Settings) -> Finding:
    from ledger.tracking import open_tracker

    with closing(open_tracker(settings)) as tracker:
        return _answers("mlflow", tracker.is_reachable())


def _answers(part: str, holds: bool, why: str = "") -> Finding:
    variable = f"FLASHCARDS_{part.upper()}_URL"
    if holds:
        return good(part, "it answers")
    return wrong(part, f"it does not answer{why}", f"see that it is up, and that {variable} is right")


if __name__ == "__main__":
    main()
