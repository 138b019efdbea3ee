"""The door: who is answered, how often, how large a body may be, and an id for every request."""

import re
import time
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, bound_contextvars, unbind_contextvars
from uuid_utils import uuid7

from ledger.settings import Settings
from ledger.tracing import trace_id
from service import telemetry, tracing
from service.auth import READING, authenticate
from service.bind import is_loopback
from service.deps import House
from service.errors import Foreign, ServiceError, TooLarge, TooOften, respond

log = structlog.get_logger()

#: Bodies of these are files: counted while they stream to the disk, against a limit of their own.
UPLOADS = re.compile(
    r"POST /v1/(?:models|datasets|bundles)|PUT /v1/models/[^/]+/(?:probe|capsule)|PUT /v1/uploads/[^/]+/parts/[^/]+"
)
HARDENING = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


class Guard:
    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._uploads = app
        self._small = RequestBodyLimitMiddleware(app, settings.max_body_bytes)
        self._names = frozenset(name.lower() for name in settings.allowed_hosts)
        # A page of another site has no key to send. Where there are no keys, the address is all there is to go by.
        self._checks_names = settings.admin_key_file is None or bool(self._names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._uploads(scope, receive, send)
            return
        scope["request_id"] = f"request_{uuid7().hex}"
        answer = Answer(send, scope["request_id"])
        started = time.perf_counter()
        with bound_contextvars(request=scope["request_id"], **_trace(scope)):
            try:
                await self._serve(scope, receive, answer)
            finally:
                elapsed = time.perf_counter() - started
                telemetry.observe(scope, answer.status, answer.began_at - started if answer.began_at else elapsed)
                _log(scope, answer.status, elapsed)
                unbind_contextvars("key")

    async def _serve(self, scope: Scope, receive: Receive, answer: "Answer") -> None:
        is_upload = UPLOADS.fullmatch(f"{scope['method']} {scope['path']}")
        try:
            self._check(Headers(scope=scope))
            await self._let_in(scope, answer)
            if not is_upload:
                self._check_length(Headers(scope=scope).get("content-length", ""))
        except ServiceError as error:
            await respond(Request(scope), error)(scope, receive, answer.send)
            return
        await (self._uploads if is_upload else self._small)(scope, receive, answer.send)

    async def _let_in(self, scope: Scope, answer: "Answer") -> None:
        house: House = scope["app"].state.house
        principal = scope["principal"] = await authenticate(house.keyring, scope)
        if principal.key_id is None:
            return
        bind_contextvars(key=principal.key_id)
        rate = await house.rates.spend(principal.key_id, principal.requests_per_minute)
        answer.add(rate.headers)
        if rate.exceeded:
            wait = {"Retry-After": str(rate.reset_seconds)}
            raise TooOften(f"{rate.limit} a minute are allowed: the next in {rate.reset_seconds} s", headers=wait)

    def _check_length(self, announced: str) -> None:
        """In words, where the length is announced; the middleware counts the others, and cuts them off."""
        if announced.isdigit() and int(announced) > self._small.max_body_size:
            raise TooLarge(f"{int(announced):,} bytes were announced; {self._small.max_body_size:,} are allowed here")

    def _check(self, headers: Headers) -> None:
        """A page of another site must not reach a service on loopback through the user's browser (DNS rebinding)."""
        if not self._checks_names:
            return
        host = _name(f"//{headers.get('host', '')}")
        if not self._is_ours(host):
            raise Foreign("host", headers.get("host", ""))
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(_name(origin)):
            raise Foreign("origin", origin)

    def _is_ours(self, host: str | None) -> bool:
        return host is not None and (is_loopback(host) or host in self._names)


class Answer:
    """Passes the answer on with the headers that every answer has, and remembers its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._headers = [*HARDENING, (b"x-request-id", request_id.encode())]
        self.status = 0
        self.began_at = 0.0

    def add(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._headers += headers

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.began_at = time.perf_counter()
            message["headers"] = [*message.get("headers", []), *self._headers]
        await self._send(message)


def _log(scope: Scope, status: int, elapsed: float) -> None:
    """By path alone: a query may hold what a user calls things. Reading is no news, unless it goes wrong."""
    news = scope["method"] not in READING or status >= 500
    say = log.info if news else log.debug
    job = {"job": scope["job_id"]} if "job_id" in scope else {}
    seconds = round(elapsed, 4)
    say("request.answered", method=scope["method"], path=scope["path"], status=status, seconds=seconds, **job)


def _trace(scope: Scope) -> dict[str, str]:
    scope["trace"] = place = tracing.place(scope)
    return {} if place is None else {"trace": trace_id(place)}


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
