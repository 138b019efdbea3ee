"""A flashcard set, a job or a learner as a notebook shows it.

from flashcards import Client, show

client = Client()
show(client, client.flashcards.get("flashcards_..."))  # the last line of a cell; an id alone will do
"""

from flashcards.views.view import View, show

__all__ = ["View", "show"]
