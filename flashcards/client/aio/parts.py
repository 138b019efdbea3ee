from flashcards.client.aio.datasets import Datasets
from flashcards.client.aio.flashcards import FlashcardSets
from flashcards.client.aio.http import Http
from flashcards.client.aio.jobs import Jobs
from flashcards.client.aio.keys import Keys
from flashcards.client.aio.learners import Learners
from flashcards.client.aio.models import Models
from flashcards.client.aio.submissions import Submissions
from flashcards.client.aio.uploads import Uploads
from flashcards.client.aio.webhooks import Webhooks


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
