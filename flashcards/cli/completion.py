"""Ids that the service knows, for a shell that asks while somebody types. Silent where nobody answers."""

import os
from collections.abc import Callable

import typer

SHOWN = 50
SECONDS = 2.0
#: The group of commands, and what its ids belong to.
GROUPS = {"cards": "flashcards"}

Offer = tuple[str, str]


def known(resource: str) -> Callable[[typer.Context, str], list[Offer]]:
    return lambda ctx, incomplete: offers(ctx, resource, incomplete)


def of_group(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """`flashcards jobs show <TAB>`: those of the group that the command belongs to."""
    group = (ctx.parent and ctx.parent.info_name) or ""
    return offers(ctx, GROUPS.get(group, group), incomplete)


def offers(ctx: typer.Context, resource: str, incomplete: str) -> list[Offer]:
    """The newest, each with what it is called."""
    from flashcards.client import Client
    from flashcards.errors import FlashcardsError

    url = ctx.find_root().params.get("url") or os.environ.get("FLASHCARDS_URL")
    try:
        with Client(url, timeout=SECONDS) as client:
            if not client.answers():
                return []
            items = getattr(client, resource).list(limit=SHOWN).items
    except (FlashcardsError, ValueError, AttributeError):
        return []
    return [(item.id, _called(item)) for item in items if item.id.startswith(incomplete)]


def _called(item: object) -> str:
    return str(getattr(item, "name", None) or getattr(item, "kind", ""))
