"""What an answer of the service is bound to, so that it can be asked further, and shown in a notebook."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import PrivateAttr

from flashcards.contract.base import Record
from flashcards.contract.resources import Page

if TYPE_CHECKING:
    from flashcards.client.http import Http


class Bound(Record):
    _http: "Http" = PrivateAttr()

    def bound_to(self, http: "Http") -> Self:
        self._http = http
        return self

    def _repr_html_(self) -> str:
        from flashcards.client.parts import Parts
        from flashcards.views import show

        return show(Parts(self._http), self)._repr_html_()  # type: ignore[arg-type]  # those that are shown are bound


def bind(value: Any, http: "Http") -> None:
    for each in value.items if isinstance(value, Page) else [value]:
        if isinstance(each, Bound):
            each.bound_to(http)
