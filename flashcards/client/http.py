"""Requests as the client makes them: asked again when the trouble passes, answered in values of the contract."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

import flashcards
from flashcards.client import files
from flashcards.client.answers import Value, read, refusal
from flashcards.client.patience import PAUSES, patiently
from flashcards.errors import NotFound, UnexpectedAnswer

Params = Mapping[str, Any]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
#: The answer to an upload comes once the whole file has been checked.
CHECK_SECONDS = 600.0


class Http:
    def __init__(self, url: str, timeout: float, key: str | None = None, direct_downloads: bool = False) -> None:
        host = _host(url)
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.direct_downloads = direct_downloads
        self._client = httpx.Client(
            base_url=self.url,
            timeout=timeout,
            headers={"User-Agent": f"flashcards/{flashcards.__version__}", **_authorization(key)},
            trust_env=host not in LOOPBACK,  # no proxy leads back to this machine
        )

    def close(self) -> None:
        self._client.close()

    def get(
        self,
        kind: type[Value],
        path: str,
        params: Params | None = None,
        *,
        wait: float = 0.0,
        pauses: Sequence[float] = PAUSES,
    ) -> Value:
        return read(kind, self.content(path, params, wait=wait, pauses=pauses))

    def content(
        self, path: str, params: Params | None = None, *, wait: float = 0.0, pauses: Sequence[float] = PAUSES
    ) -> bytes:
        return self._ask("GET", path, pauses, params=_given(params), timeout=self.timeout + wait).content

    def post(self, kind: type[Value], path: str, body: Any = None, params: Params | None = None) -> Value:
        headers = {"Idempotency-Key": str(uuid4())}
        return read(kind, self._ask("POST", path, json=body, params=_given(params), headers=headers).content)

    def upload(
        self,
        kind: type[Value],
        path: str,
        file: Path,
        params: Params | None = None,
        progress: files.Progress | None = None,
        method: str = "POST",
    ) -> Value:
        headers = {"Idempotency-Key": str(uuid4()), "Content-Type": "application/octet-stream"}
        timeout = httpx.Timeout(self.timeout, read=CHECK_SECONDS)

        def ask() -> httpx.Response:
            with file.open("rb") as opened:
                size = files.size_of(opened)
                return self._once(
                    method,
                    path,
                    content=files.chunks(opened, size, progress),
                    params=_given(params),
                    headers={**headers, "Content-Length": str(size)},
                    timeout=timeout,
                )

        return read(kind, patiently(self.url, ask).content)

    def download(self, path: str, to: str | PathLike[str], name: str) -> Path:
        """To the file `to`, or under `name` into the folder `to`."""
        params = {"presign": "true"} if self.direct_downloads else None

        def ask() -> Path:
            with self._client.stream("GET", path, params=params) as answer:
                if answer.status_code == httpx.codes.TEMPORARY_REDIRECT:
                    return self._save_from_store(answer, to, name)
                return files.save(_granted(answer), to, name, _digest(answer))

        return patiently(self.url, ask)

    def _save_from_store(self, answer: httpx.Response, to: str | PathLike[str], name: str) -> Path:
        """The link is all that the store gets to see: no header of ours goes there, and no further link is followed."""
        link = answer.headers.get("Location", "")
        try:
            trust = _host(link) not in LOOPBACK
        except ValueError:
            raise UnexpectedAnswer("the service answered with a link that leads to no web address") from None
        with httpx.stream("GET", link, timeout=self.timeout, trust_env=trust, follow_redirects=False) as found:
            return files.save(_granted(found), to, name, _digest(answer))

    def delete(self, path: str) -> None:
        heard = False

        def ask() -> None:
            nonlocal heard
            again, heard = heard, True
            try:
                self._once("DELETE", path)
            except NotFound:
                # The first time it was done, and only the answer was lost.
                if not again:
                    raise

        patiently(self.url, ask)

    def probe(self, path: str) -> httpx.Response:
        """One try, and whatever comes back: what a refusal says is of interest too."""
        return self._client.get(path)

    @contextmanager
    def stream(
        self, path: str, headers: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> Iterator[httpx.Response]:
        """One try: what to do when it breaks off is for the caller to know."""
        with self._client.stream("GET", path, headers=headers, timeout=timeout or self.timeout) as answer:
            yield _granted(answer)

    def _ask(self, method: str, path: str, pauses: Sequence[float] = PAUSES, **request: Any) -> httpx.Response:
        return patiently(self.url, lambda: self._once(method, path, **request), pauses)

    def _once(self, method: str, path: str, **request: Any) -> httpx.Response:
        answer = self._client.request(method, path, **request)
        if not answer.is_success:
            raise refusal(answer)
        return answer


def is_local(url: str) -> bool:
    return _host(url) in LOOPBACK


def _authorization(key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("that is not a key: it would begin with fc_")
    return {"Authorization": f"Bearer {key}"}


def _granted(answer: httpx.Response) -> httpx.Response:
    if not answer.is_success:
        answer.read()
        raise refusal(answer)
    return answer


def _digest(answer: httpx.Response) -> str:
    return str(answer.headers.get("ETag", "")).strip('"')


def _given(params: Params | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def _host(url: str) -> str:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError(f"{url!r} is no address of a service; write it like http://127.0.0.1:8642")
    return address.host
