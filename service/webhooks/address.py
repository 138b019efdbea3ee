"""A first look at where a webhook leads, for an early word. What counts is looked at before every try."""

import threading
from collections.abc import Sequence

from ledger import addresses
from ledger.addresses import Place, Refused, Resolver
from ledger.settings import Settings
from service.errors import Invalid

LOOKUP_SECONDS = 3
FIELD = "body.url"


def check_address(url: str, settings: Settings, resolver: Resolver = addresses.look_up) -> None:
    """A name that leads nowhere passes: it may tomorrow, and until then the deliveries say so."""
    try:
        place = addresses.read(url)
        if place.scheme == "http" and not settings.webhook_private_networks:
            raise Refused(
                "webhooks go over https; FLASHCARDS_WEBHOOK_PRIVATE_NETWORKS allows http in networks of yours"
            )
        if answers := _look_up(place, resolver):
            addresses.check(place, answers, settings.webhook_private_networks)
    except Refused as refused:
        raise Invalid(FIELD, str(refused)) from None


def _look_up(place: Place, resolver: Resolver) -> Sequence[str]:
    """In a thread that nobody waits for longer than this."""
    found: list[str] = []

    def look() -> None:
        try:
            found.extend(resolver(place.host, place.port))
        except (OSError, UnicodeError):
            return

    thread = threading.Thread(target=look, name="lookup", daemon=True)
    thread.start()
    thread.join(LOOKUP_SECONDS)
    return list(found)
