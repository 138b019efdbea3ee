"""What commands of an operator have in common: settings in, progress and words out, an exit code for scripts."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError

from ledger.errors import LedgerError, StoreAway
from ledger.logs import configure_logs
from ledger.settings import Settings, load_settings

WRONG, AWAY, INTERRUPTED = 1, 5, 130  # as `flashcards.cli.exits` has them
TELL_SECONDS = 2


class Progress:
    """A line on standard error now and then."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._told_at = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._told_at >= TELL_SECONDS:
            self._told_at = time.monotonic()
            print(f"{self._verb} {done} of {total} files", file=sys.stderr, flush=True)


@contextmanager
def in_words(as_json: bool) -> Iterator[Settings]:
    try:
        settings = load_settings()
        configure_logs(settings)
        yield settings
    except LedgerError as error:
        _complain(error.detail, as_json, AWAY if isinstance(error, StoreAway) else WRONG)
    except DBAPIError as error:
        _complain(f"the database does not answer, or refuses: {error.orig}", as_json, AWAY)
    except KeyboardInterrupt:
        _complain("stopped half-way: run it again, and it goes on", as_json, INTERRUPTED)
    except OSError as error:
        _complain(f"{error.filename or 'a file'}: {error.strerror}", as_json, WRONG)


def say(what: str | dict[str, Any]) -> None:
    print(what if isinstance(what, str) else json.dumps(what))


def size_in_words(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def _complain(words: str, as_json: bool, code: int) -> None:
    print(
        json.dumps({"title": "it was not done", "detail": words}) if as_json else f"flashcards: {words}",
        file=sys.stderr,
    )
    sys.exit(code)
