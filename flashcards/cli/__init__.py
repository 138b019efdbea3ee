"""The `flashcards` command."""

from flashcards.cli.main import app

__all__ = ["app"]
