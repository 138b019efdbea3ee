from flashcards.client.aio.resource import Resource
from flashcards.contract.resources import Page
from flashcards.contract.uploads import Upload


class Uploads(Resource[Upload]):
    """Large files on their way. `models.push` and the like begin them, go on with them and bring them to their end."""

    path = "/v1/uploads"
    item = Upload
    page = Page[Upload]
