"""Pictures of the service as parts of a page."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from flashcards.errors import FlashcardsError
from flashcards.views.html import Html, element, picture, written


def fetched(title: str, media_type: str, fetch: Callable[[Path], Path]) -> Html:
    """By way of a file, so that it is checked like any download. One that does not come is told in its place."""
    with TemporaryDirectory() as folder:
        try:
            return picture(fetch(Path(folder)).read_bytes(), media_type, title)
        except FlashcardsError as error:
            return element("p", written(f"{title}: {error}"))
