"""Guides that point at something point at something that is there, and quote what the service says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "examples" / "README.md"])
GUIDES = (
    *("first-capture", "from-pytorch", "from-keras", "capsules", "pipeline", "how-it-works"),
    *("choosing", "operations", "troubleshooting", "cli", "python", "moving", "recipes"),
)
ROOMS = ("flashcards", "service", "ledger", "worker", "engine")


@pytest.fixture(scope="module")
def source() -> str:
    return "\n".join(path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_guide_is_there_and_the_readme_leads_to_it():
    readme = (ROOT / "README.md").read_text()
    assert [name for name in GUIDES if f"(docs/{name}.md)" not in readme] == []


def rows(title: str) -> list[str]:
    """The first column of the table below this heading."""
    part = (ROOT / "docs" / "troubleshooting.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in part.splitlines() if line.startswith("| ")][2:]


def test_the_reasons_of_failed_jobs_are_those_of_the_code(source):
    assert [title for title in rows("Why a job failed") if f'"{title}"' not in source] == []


def test_the_messages_are_those_of_the_code(source):
    for row in rows("From the command line and the client"):
        words = re.search(r"`([^`]+)`", row)[1].split(" http")[0].split("...")[0]
        said = words.replace("that is no Job", "that is no")
        assert said in source.replace("{kind.__name__} to this client", "to this client") or said[:24] in source, row


def test_a_title_that_nobody_says_would_be_found(source):
    assert '"The training went for a walk"' not in source
    assert len(rows("Why a job failed")) > 8
