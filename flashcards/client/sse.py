# Made from aio/sse.py by `make client`: change it there.
"""Server-sent events, as the WHATWG wrote them down."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Said(NamedTuple):
    kind: str
    data: str


def read_said(chunks: Iterable[bytes]) -> Iterator[Said | None]:
    """What was said; None for a sign of life."""
    kind, data = "message", list[str]()
    for line in lines(chunks):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            kind = line[6:].removeprefix(" ")
        elif not line and data:
            yield Said(kind, "\n".join(data))
            kind, data = "message", []
        elif line.startswith(":"):
            yield None


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """httpx would also break lines at U+2028 and its like, which stand unescaped in JSON."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode()
