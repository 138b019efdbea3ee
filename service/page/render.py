"""The frame of each view. What stands in it is fetched from the API by the view's script."""

from functools import cache
from pathlib import Path
from typing import get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from flashcards.contract.specs import JobKind
from service.page.assets import load

#: The sections of the navigation: address, and what it is called.
SECTIONS = (
    ("/", "Overview"),
    ("/jobs", "Jobs"),
    ("/models", "Models"),
    ("/datasets", "Datasets"),
    ("/flashcards", "Flashcards"),
    ("/learners", "Learners"),
    ("/compare", "Compare"),
    ("/api", "API"),
)


@cache
def _environment() -> Environment:
    folder = FileSystemLoader(Path(__file__).parent / "templates")
    return Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def page(view: str, section: str) -> str:
    """Nothing of the caller is in it: the view's script takes the id out of the address."""
    template = _environment().get_template(f"{view}.html")
    return template.render(
        view=view, section=section, sections=SECTIONS, kinds=get_args(JobKind), assets=f"/page/{load().digest}"
    )
