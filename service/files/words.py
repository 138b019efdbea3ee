"""How things out of a hostile file are put into a message: printable, short, few."""

from collections.abc import Iterable

SHOWN = 4


def clipped(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def quoted(text: str) -> str:
    return repr(clipped(text))


def several(names: Iterable[str]) -> str:
    known = sorted(names)
    rest = len(known) - SHOWN
    return ", ".join(quoted(name) for name in known[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def sides(shape: Iterable[int | str]) -> str:
    return "x".join(str(side) for side in shape) or "a single number"


def size(count: int) -> str:
    """Exact while it is small enough to compare by eye."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if count >= 10 * unit:
            return f"{count // unit:,} {name}"
    return f"{count:,} bytes"
