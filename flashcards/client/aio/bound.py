"""What an answer of the service is bound to, so that it can be asked further."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import PrivateAttr

from flashcards.contract.base import Record
from flashcards.contract.resources import Page

if TYPE_CHECKING:
    from flashcards.client.aio.http import Http


class Bound(Record):
    _http: "Http" = PrivateAttr()

    def bound_to(self, http: "Http") -> Self:
        self._http = http
        return self


def bind(value: Any, http: "Http") -> None:
    for each in value.items if isinstance(value, Page) else [value]:
        if isinstance(each, Bound):
            each.bound_to(http)
