import sys

from ledger.settings import Settings
from service.guard import is_loopback


def check_bind(settings: Settings) -> None:
    """Without keys anybody who reaches the port may do anything, so only this machine may reach it."""
    if not is_loopback(settings.host):
        sys.exit(
            f"flashcards: FLASHCARDS_HOST={settings.host} would open the service to the network without keys. "
            "Bind to 127.0.0.1, and put a proxy that knows its users in front of it."
        )
