"""One try at a delivery: look the address up once, check it, sign, post to what was checked, hear the answer.

Everything together has one deadline. No redirect is followed, no proxy of the environment is asked, and of the answer
only its status is of interest.
"""

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import httpcore
import httpx

import flashcards
from flashcards.contract.webhooks import WebhookBody
from ledger import addresses, webhooks
from ledger.addresses import Address, Place, Refused, Resolver
from ledger.clock import as_datetime
from ledger.deliveries import Outcome, Parcel
from ledger.settings import Settings

MOST_READ = 4096  # bytes of an answer, so that a receiver is not cut off in the middle of it
READ_SECONDS = 1
GONE = 410


class Sender:
    def __init__(self, settings: Settings, resolver: Resolver = addresses.look_up) -> None:
        self._settings = settings
        self._resolver = resolver
        self._trust = httpx.create_ssl_context()

    async def send(self, parcel: Parcel) -> Outcome:
        """Whatever happens is an outcome, and none takes longer than a receiver is given."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._settings.webhook_seconds):
                status = await self._post(parcel)
        except Exception as error:
            return Outcome(time.monotonic() - started, reason=self._in_words(error))
        return Outcome(time.monotonic() - started, status, _why_not(status), final=status == GONE)

    async def _post(self, parcel: Parcel) -> int:
        body = render(parcel, self._settings.public_url)
        place = addresses.read(parcel.webhook.url)
        answers = await self._look_up(place)
        pinned = addresses.check(place, answers, self._settings.webhook_private_networks)
        url = httpcore.URL(scheme=place.scheme, host=place.host, port=place.port, target=place.path)
        backend = Pinned(pinned, self._settings.webhook_seconds / (len(pinned) + 1))
        headers = [("Host", place.origin), *self._headers(parcel, body)]
        async with (
            httpcore.AsyncConnectionPool(ssl_context=self._trust, network_backend=backend) as pool,
            pool.stream("POST", url, headers=headers, content=body.encode()) as answer,
        ):
            await _read_some(answer)
            return int(answer.status)

    def _headers(self, parcel: Parcel, body: str) -> list[tuple[str, str]]:
        at, id = as_datetime(parcel.at), parcel.delivery.id
        return [
            ("Content-Type", "application/json"),
            ("User-Agent", f"flashcards/{flashcards.__version__}"),
            ("webhook-id", id),
            ("webhook-timestamp", str(int(at.timestamp()))),
            ("webhook-signature", webhooks.sign(parcel.webhook, self._settings.webhook_secret, id, at, body)),
        ]

    async def _look_up(self, place: Place) -> Sequence[str]:
        """In a thread of its own, that ends with the process: a lookup that hangs keeps no other one waiting."""
        found: Future[Sequence[str]] = Future()
        found.set_running_or_notify_cancel()  # who gives up waiting does not stop it

        def look() -> None:
            try:
                found.set_result(self._resolver(place.host, place.port))
            except Exception as error:
                found.set_exception(error)

        threading.Thread(target=look, name="lookup", daemon=True).start()
        return await asyncio.wrap_future(found)

    def _in_words(self, error: Exception) -> str:
        match error:
            case Refused() | webhooks.OtherSecret():
                return str(error)
            case TimeoutError() | httpcore.TimeoutException():
                return f"the receiver did not answer within {self._settings.webhook_seconds:g} s"
            case ssl.SSLError() | httpcore.ConnectError() if "CERTIFICATE" in str(error):
                return f"its certificate is not to be trusted: {error}"
            case _:
                return f"the receiver cannot be reached: {error or type(error).__name__}"[:500]


class Pinned(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were checked, whatever name is asked for: nothing is looked up a second time."""

    def __init__(self, pinned: Sequence[Address], seconds_each: float) -> None:
        self._pinned = pinned
        self._seconds_each = seconds_each
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._pinned:
            try:
                return await self._plain.connect_tcp(
                    str(address), port, self._seconds_each, local_address, socket_options
                )
            except (httpcore.NetworkError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed


def render(parcel: Parcel, public_url: str) -> str:
    """The same for every try. Links are whole addresses where the service knows its own."""
    data = dict(parcel.delivery.data)
    data["links"] = {name: public_url.rstrip("/") + path for name, path in data["links"].items()}
    at = as_datetime(parcel.delivery.created_at)
    body = WebhookBody(type=parcel.delivery.type, timestamp=at, data=data)
    return json.dumps(body.model_dump(mode="json", exclude_none=True), separators=(",", ":"))


async def _read_some(answer: httpcore.Response) -> None:
    """Its status has been said: how long the rest takes changes nothing."""
    read = 0
    with suppress(TimeoutError, httpcore.NetworkError, httpcore.RemoteProtocolError):
        async with asyncio.timeout(READ_SECONDS):
            async for chunk in answer.aiter_stream():
                read += len(chunk)
                if read >= MOST_READ:
                    return


def _why_not(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"the receiver answered {status}, and redirects are not followed: give the webhook its last address"
    if status == GONE:
        return "the receiver answered 410: it wants no more of these"
    return f"the receiver answered {status}"
