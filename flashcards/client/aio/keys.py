from typing import Any

from flashcards.client.aio.resource import Resource
from flashcards.contract.keys import Key, MadeKey
from flashcards.contract.resources import Page


class Keys(Resource[Key]):
    """For whoever holds an `admin` key. `delete` revokes for good."""

    path = "/v1/keys"
    item = Key
    page = Page[Key]

    async def create(self, name: str, **fields: Any) -> MadeKey:
        """Its `key` is shown in this answer and nowhere else. Fields as in `flashcards.contract.keys.NewKey`."""
        return await self._http.post(MadeKey, self.path, {"name": name, **fields})
