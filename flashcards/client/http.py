# Made from aio/http.py by `make client`: change it there.
"""Requests as the client makes them: asked again when the trouble passes, answered in values of the contract."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

import flashcards
from flashcards.client.addresses import Params, announced_digest, authorization, given, is_local
from flashcards.client.answers import Value, read, refusal
from flashcards.client.bound import bind
from flashcards.client.files import PARTS_ABOVE, Progress, size_of
from flashcards.client.patience import LONG_PAUSES, PAUSES, patiently
from flashcards.client.transfer import chunks, save
from flashcards.client.uploading import upload_in_parts
from flashcards.errors import NotFound, UnexpectedAnswer
from flashcards.progress import show_upload

#: The answer to an upload comes once the whole file has been checked.
CHECK_SECONDS = 600.0


class Http:
    def __init__(
        self,
        url: str,
        timeout: float,
        key: str | None = None,
        direct_downloads: bool = False,
        direct_uploads: bool = False,
        parts_above: int = PARTS_ABOVE,
    ) -> None:
        local = is_local(url)
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.direct_downloads = direct_downloads
        self.direct_uploads = direct_uploads
        self.parts_above = parts_above
        self._client = httpx.Client(
            base_url=self.url,
            timeout=timeout,
            headers={"User-Agent": f"flashcards/{flashcards.__version__}", **authorization(key)},
            trust_env=not local,  # no proxy leads back to this machine
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
        return self._read(kind, self.content(path, params, wait=wait, pauses=pauses))

    def content(
        self, path: str, params: Params | None = None, *, wait: float = 0.0, pauses: Sequence[float] = PAUSES
    ) -> bytes:
        answer = self._ask("GET", path, pauses, params=given(params), timeout=self.timeout + wait)
        return answer.content

    def post(
        self,
        kind: type[Value],
        path: str,
        body: Any = None,
        params: Params | None = None,
        *,
        wait: float = 0.0,
        pauses: Sequence[float] = PAUSES,
    ) -> Value:
        headers = {"Idempotency-Key": str(uuid4())}
        timeout = httpx.Timeout(self.timeout, read=self.timeout + wait)
        answer = self._ask("POST", path, pauses, json=body, params=given(params), headers=headers, timeout=timeout)
        return self._read(kind, answer.content)

    def put(self, path: str, content: bytes, headers: Mapping[str, str]) -> None:
        """What may be done twice: it is asked again for as long as a restart of the service takes."""
        self._ask("PUT", path, LONG_PAUSES, content=content, headers=headers)

    def upload(
        self,
        kind: type[Value],
        path: str,
        file: Path,
        params: Params | None = None,
        progress: Progress | bool | None = None,
        method: str = "POST",
    ) -> Value:
        told = show_upload(file.name) if progress is True else progress or None
        if method == "POST" and file.stat().st_size > self.parts_above:
            return upload_in_parts(self, kind, path, file, params or {}, told, CHECK_SECONDS)
        headers = {"Idempotency-Key": str(uuid4()), "Content-Type": "application/octet-stream"}
        timeout = httpx.Timeout(self.timeout, read=CHECK_SECONDS)

        def ask() -> httpx.Response:
            with file.open("rb") as opened:
                size = size_of(opened)
                return self._once(
                    method,
                    path,
                    content=chunks(opened, size, told),
                    params=given(params),
                    headers={**headers, "Content-Length": str(size)},
                    timeout=timeout,
                )

        return self._read(kind, patiently(self.url, ask).content)

    def download(self, path: str, to: str | PathLike[str], name: str) -> Path:
        """To the file `to`, or under `name` into the folder `to`."""
        params = {"presign": "true"} if self.direct_downloads else None

        def ask() -> Path:
            with self._client.stream("GET", path, params=params) as answer:
                if answer.status_code == httpx.codes.TEMPORARY_REDIRECT:
                    return self._save_from_store(answer, to, name)
                return save(_granted(answer), to, name, announced_digest(answer))

        return patiently(self.url, ask)

    def _save_from_store(self, answer: httpx.Response, to: str | PathLike[str], name: str) -> Path:
        """The link is all that the store gets to see: no header of ours goes there, and no further link is followed."""
        link = answer.headers.get("Location", "")
        with self.plain(link) as store, store.stream("GET", link) as found:
            return save(_granted(found), to, name, announced_digest(answer))

    def plain(self, link: str) -> httpx.Client:
        """For a link to the store, which is to see no header of ours."""
        try:
            trust = not is_local(link)
        except ValueError:
            raise UnexpectedAnswer("the service answered with a link that leads to no web address") from None
        return httpx.Client(timeout=self.timeout, trust_env=trust, follow_redirects=False)

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

    def _read(self, kind: type[Value], content: bytes) -> Value:
        value = read(kind, content)
        bind(value, self)
        return value

    def _ask(self, method: str, path: str, pauses: Sequence[float] = PAUSES, **request: Any) -> httpx.Response:
        return patiently(self.url, lambda: self._once(method, path, **request), pauses)

    def _once(self, method: str, path: str, **request: Any) -> httpx.Response:
        answer = self._client.request(method, path, **request)
        if not answer.is_success:
            raise refusal(answer)
        return answer


def _granted(answer: httpx.Response) -> httpx.Response:
    if not answer.is_success:
        answer.read()
        raise refusal(answer)
    return answer
