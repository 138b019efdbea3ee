# Made from aio/parts.py by `make client`: change it there.
from flashcards.client.datasets import Datasets
from flashcards.client.flashcards import FlashcardSets
from flashcards.client.http import Http
from flashcards.client.jobs import Jobs
from flashcards.client.keys import Keys
from flashcards.client.learners import Learners
from flashcards.client.models import Models
from flashcards.client.submissions import Submissions
from flashcards.client.uploads import Uploads
from flashcards.client.webhooks import Webhooks


class Parts:
    """The resources of one service, over one set of connections."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.models = Models(http)
        self.datasets = Datasets(http)
        self.jobs = Jobs(http)
        self.flashcards = FlashcardSets(http)
        self.learners = Learners(http)
        self.keys = Keys(http)
        self.webhooks = Webhooks(http)
        self.submissions = Submissions(http)
        self.uploads = Uploads(http)
