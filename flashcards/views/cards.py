from typing import TYPE_CHECKING

from flashcards.contract.resources import Flashcards
from flashcards.views.files import fetched
from flashcards.views.html import Html, card, facts

if TYPE_CHECKING:
    from flashcards.client import Client


def show_flashcards(client: "Client", cards: Flashcards) -> Html:
    recipe = cards.recipe
    rows = [
        ("id", cards.id),
        ("cards", f"{recipe.count:,} of {recipe.input}, {recipe.dtype}"),
        ("source", f"{recipe.source}, r = {recipe.r}, seed {recipe.seed}"),
        ("model", cards.model),
        *([] if cards.materialised else [("kept", "the recipe alone: the cards are made again from it")]),
    ]
    sheet = fetched("contact sheet", "image/png", lambda folder: client.flashcards.sheet(cards.id, folder))
    return card(cards.name or "Flashcards", facts(rows), sheet)
