"""What an examination of a service finds, on either side of the wire."""

from pydantic import Field

from flashcards.contract.base import Record

LOW_DISK_BYTES = 1024**3


class Finding(Record):
    what: str = Field(description="what was looked at")
    ok: bool | None = Field(description="null: it could not be looked at from here")
    found: str
    advice: str | None = Field(default=None, description="what to do, where something is wrong")


def good(what: str, found: str) -> Finding:
    return Finding(what=what, ok=True, found=found)


def wrong(what: str, found: str, advice: str) -> Finding:
    return Finding(what=what, ok=False, found=found, advice=advice)


def unseen(what: str, found: str) -> Finding:
    return Finding(what=what, ok=None, found=found)
