"""Server-sent events, as the WHATWG wrote them down."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import NamedTuple


class Said(NamedTuple):
    kind: str
    data: str


async def read_said(chunks: AsyncIterable[bytes]) -> AsyncIterator[Said | None]:
    """What was said; None for a sign of life."""
    kind, data = "message", list[str]()
    async for line in lines(chunks):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            kind = line[6:].removeprefix(" ")
        elif not line and data:
            yield Said(kind, "\n".join(data))
            kind, data = "message", []
        elif line.startswith(":"):
            yield None


async def lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """httpx would also break lines at U+2028 and its like, which stand unescaped in JSON."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode()
