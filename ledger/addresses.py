"""Where a webhook may go. A name is looked up once for each try, and what was checked here is what is connected to.

A tenant chooses the address, and this machine stands in a network that the tenant does not: databases, metadata of a
cloud, the service itself. So everything is refused that is not plainly of the internet.
"""

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolver = Callable[[str, int], Sequence[str]]

PORTS = {"https": 443, "http": 80}
INTERNET_V6 = IPv6Network("2000::/3")
#: Of those that `ipaddress` takes for the internet's.
NOT_INTERNET: tuple[Network, ...] = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv4Network("168.63.129.16/32"),  # a cloud's own services, at an address that looks public
    IPv6Network("2002::/16"),  # 6to4: there is an IPv4 address inside
    IPv6Network("3fff::/20"),  # documentation
)


class Refused(Exception):
    """This address is not gone to, and why."""


@dataclass(frozen=True)
class Place:
    """An address of a webhook that makes sense, and where it leads."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """What the header `Host` says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def read(url: str) -> Place:
    """Raises Refused, in words."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Refused("this is no address of the form https://host/path") from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise Refused("this is no address of the form https://host/path")
    if parts.username is not None or parts.password is not None:
        raise Refused("name and password do not belong into the address: deliveries are signed")
    if parts.fragment:
        raise Refused("what stands behind # never reaches a receiver: leave it out")
    return Place(parts.scheme, _host(parts), port or PORTS[parts.scheme], _path(parts))


def look_up(host: str, port: int) -> list[str]:
    """The resolver of this machine, where there is something to look up. Raises OSError."""
    with suppress(ValueError):
        return [str(ip_address(host))]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def check(place: Place, answers: Sequence[str], private: Sequence[Network]) -> list[Address]:
    """What a lookup said, as addresses to connect to. One bad one spoils all: the next lookup may bring it first."""
    found = [_plain(ip_address(answer)) for answer in answers]
    inside = [any(address in network for network in private) for address in found]
    for address, ours in zip(found, inside, strict=True):
        if not ours and not is_internet(address):
            where = "" if str(address) == place.host else f" is at {address}, which"
            raise Refused(f"{place.host}{where} is no address of the internet")
    if place.scheme == "http" and not all(inside):
        raise Refused("plain http is for private networks that are allowed: take https")
    return found


def is_internet(address: Address) -> bool:
    if any(address in network for network in NOT_INTERNET):
        return False
    if isinstance(address, IPv6Address) and address not in INTERNET_V6:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _plain(address: Address) -> Address:
    """An IPv4 address in the clothes of IPv6 is judged, and connected to, as what it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    with suppress(ValueError):
        return str(ip_address(host))
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        raise Refused(f"{host!r} is no name of a host") from None


def _path(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
