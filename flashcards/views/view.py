"""Which thing is shown how. Nothing is asked of the service before the notebook wants to draw."""

from typing import TYPE_CHECKING

from flashcards.contract.learners import Learner
from flashcards.contract.resources import Flashcards, Job, JobSummary
from flashcards.errors import FlashcardsError
from flashcards.views.cards import show_flashcards
from flashcards.views.html import Html, element, written
from flashcards.views.job import show_job
from flashcards.views.learner import show_learner

if TYPE_CHECKING:
    from flashcards.client import Client

Thing = Flashcards | JobSummary | Learner


class View:
    """HTML that needs nothing else: styles and pictures are inside."""

    def __init__(self, client: "Client", thing: Thing | str) -> None:
        self._client = client
        self._thing = thing

    def _repr_html_(self) -> str:
        try:
            return str(self._drawn())
        except FlashcardsError as error:
            return str(element("p", written(error)))

    def __repr__(self) -> str:
        return self._thing if isinstance(self._thing, str) else repr(self._thing)

    def _drawn(self) -> Html:
        thing = self._found()
        match thing:
            case Flashcards():
                return show_flashcards(self._client, thing)
            case Learner():
                return show_learner(self._client, thing)
            case Job():
                return show_job(self._client, thing)
            case _:
                return show_job(self._client, self._client.jobs.get(thing.id))

    def _found(self) -> Thing:
        """An id begins with the name of what it points to."""
        if not isinstance(self._thing, str):
            return self._thing
        kind = self._thing.partition("_")[0]
        if kind == "flashcards":
            return self._client.flashcards.get(self._thing)
        if kind == "learner":
            return self._client.learners.get(self._thing)
        return self._client.jobs.get(self._thing)


def show(client: "Client", thing: Thing | str) -> View:
    """For the last line of a notebook's cell: a flashcard set, a job or a learner, or the id of one."""
    if isinstance(thing, str) and not thing.startswith(("flashcards_", "job_", "learner_")):
        raise ValueError(f"{thing!r} is no id of a flashcard set, a job or a learner")
    if not isinstance(thing, str | Flashcards | JobSummary | Learner):
        raise TypeError(f"a {type(thing).__name__} is neither a flashcard set, nor a job, nor a learner")
    return View(client, thing)
