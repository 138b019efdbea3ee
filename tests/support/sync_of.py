"""`make client`: the client that waits, derived from the one that awaits. One is written, both are read and tested."""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "flashcards" / "client"
SOURCE = CLIENT / "aio"
#: Both have these of their own: what a notebook shows must be there at once, and is not awaited.
OWN = {"__init__.py", "bound.py"}
WORDS = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bflashcards\.client\.aio\b", "flashcards.client"),
    (r"\bimport asyncio\b", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bAsync(Iterator|Iterable|Generator|Client|Exit)\b", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(enter|exit|iter)__\b", r"__\1__"),
    (r"\ba(iter_bytes|iter_raw|read|close)\b", r"\1"),
)


def sources() -> list[Path]:
    return sorted(path for path in SOURCE.glob("*.py") if path.name not in OWN)


def sync_of(path: Path) -> str:
    text = _without(path.read_text(), r"(?<!\w)\(await ", ")")
    for pattern, words in WORDS:
        text = re.sub(pattern, words, text)
    text = _without(text, r"Awaitable\[", "]").replace("import time\nimport time\n", "import time\n")
    text = f"# Made from aio/{path.name} by `make client`: change it there.\n{text}"
    target = CLIENT / path.name
    for command in (["check", "--fix-only", "--unsafe-fixes", "--quiet"], ["format", "--quiet"]):
        text = _ruff(*command, f"--stdin-filename={target}", "-", given=text)
    return text


def _without(text: str, opening: str, closing: str) -> str:
    """What stands between the brackets stays."""
    inner = "(" if closing == ")" else "["
    while found := re.search(opening, text):
        depth, end = 1, found.end()
        while depth:
            depth += {inner: 1, closing: -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[found.end() : end - 1] + text[end:]
    return text


def _ruff(*arguments: str, given: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    return subprocess.run([ruff, *arguments], input=given, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    for path in sources():
        (CLIENT / path.name).write_text(sync_of(path))


if __name__ == "__main__":
    main()
