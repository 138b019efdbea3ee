"""Reports of what was reproduced: a page each in docs, made by a command each, and every page leads to the others."""

import sys
from pathlib import Path

from benchmarks.lab import Lab

PAGES = {
    "reproduction.md": ("capture", "reproduce-capture"),
    "reproduction-continual.md": ("learning task after task", "reproduce-continual"),
    "reproduction-classification.md": ("classes", "reproduce-classification"),
}
OPENING = "Reports: "
PLACES = ("--folder", "--records", "--docs")
NOT_RUN = "not run"

Lines = list[str]


def write_report(path: Path, head: Lines, sections: list[tuple[str, Lines]]) -> Path:
    """Markdown: what stands above, then each section under its title. Pages beside it learn that it is there."""
    lines = [*head, ""]
    for title, body in sections:
        lines += [f"## {title}", "", *body, ""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines).rstrip() + "\n")
    lead_to_each_other(path.parent)
    return path


def lead_to_each_other(docs: Path) -> None:
    """The line under every page's title, as of which pages there are by now."""
    for name in PAGES:
        path = docs / name
        if path.exists():
            title, *rest = [line for line in path.read_text().split("\n") if not line.startswith(OPENING)]
            below = "\n".join(rest).strip("\n")
            path.write_text(f"{title}\n\n{_pages(docs, name)}\n\n{below}\n")


def _pages(docs: Path, here: str) -> str:
    return f"{OPENING}{', '.join(_page(docs, name, here) for name in PAGES)}."


def _page(docs: Path, name: str, here: str) -> str:
    what, target = PAGES[name]
    if name == here:
        return f"**{what}** (this page)"
    return f"[{what}]({name})" if (docs / name).exists() else f"{what} ({NOT_RUN}: `make {target}`)"


def words_of(words: list[str] | None) -> Lines:
    """What decides about the figures; where steps and report lie does not."""
    words = sys.argv[1:] if words is None else words
    places = [place for place, word in enumerate(words) if word in PLACES]
    return [word for place, word in enumerate(words) if place not in places and place - 1 not in places]


def commits(*labs: Lab) -> str:
    """Which made the steps that a report shows."""
    found = {commit for lab in labs for commit in lab.records.commits(lab.size.name, lab.used)}
    return ", ".join(f"`{commit}`" for commit in sorted(found)) or "none yet"


def header(*columns: str) -> Lines:
    return [row(*columns), row(*["---"] * len(columns))]


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
