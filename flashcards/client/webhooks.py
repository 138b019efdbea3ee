# Made from aio/webhooks.py by `make client`: change it there.
from collections.abc import Iterator, Mapping, Sequence

from flashcards.client.resource import AT_ONCE, Resource, at, each
from flashcards.contract.resources import Page
from flashcards.contract.webhooks import Delivery, DeliveryState, EventType, MadeWebhook, Webhook


class Webhooks(Resource[Webhook]):
    """Be told when jobs end. `delete` goes with all that is not delivered yet."""

    path = "/v1/webhooks"
    item = Webhook
    page = Page[Webhook]

    def create(
        self,
        url: str,
        events: Sequence[EventType],
        labels: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> MadeWebhook:
        """Its `secret` is shown in this answer and nowhere else. With `labels`, only of jobs that have them all."""
        body = {"url": url, "events": [*events], "labels": {**(labels or {})}, "name": name}
        return self._http.post(MadeWebhook, self.path, body)

    def rotate(self, id: str, grace_hours: float = 24) -> MadeWebhook:
        """A new secret. For so long deliveries are signed with the one before as well."""
        return self._http.post(MadeWebhook, at(self.path, id, "rotate"), {"grace_hours": grace_hours})

    def deliveries(
        self, id: str, state: DeliveryState | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[Delivery]:
        """One page, newest first, each with its tries; its `next_cursor` asks for the next."""
        params = {"state": state, "limit": limit, "cursor": cursor}
        return self._http.get(Page[Delivery], at(self.path, id, "deliveries"), params)

    def each_delivery(self, id: str, state: DeliveryState | None = None) -> Iterator[Delivery]:
        """All of them, newest first, a page at a time."""
        return each(lambda cursor: self.deliveries(id, state, AT_ONCE, cursor))

    def delivery(self, id: str, delivery: str) -> Delivery:
        return self._http.get(Delivery, at(self.path, id, "deliveries", delivery))

    def redeliver(self, id: str, delivery: str) -> Delivery:
        """Send it again, now and under the same id, however it went before."""
        return self._http.post(Delivery, at(self.path, id, "deliveries", delivery, "redeliver"))
