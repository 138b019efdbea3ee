import ipaddress
import socket
import sys

from ledger.settings import Settings


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_bind(settings: Settings) -> None:
    """Without keys anybody who reaches the port may do anything, so only this machine may reach it."""
    if settings.admin_key_file is None and not is_loopback(settings.host):
        sys.exit(
            f"flashcards: FLASHCARDS_HOST={settings.host} would open the service to the network without keys. "
            "Bind to 127.0.0.1, or give it a first key with FLASHCARDS_ADMIN_KEY_FILE."
        )


def settle_port(settings: Settings) -> Settings:
    """A port that is taken is said at once, not found by the API again and again; 0 means any free one."""
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            sys.exit(
                f"flashcards: cannot listen on {settings.host}:{settings.port} ({error.strerror}); "
                "FLASHCARDS_PORT picks another port"
            )
        return settings.model_copy(update={"port": probe.getsockname()[1]})
