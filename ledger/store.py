"""Bytes by content: a folder, S3, GCS or Azure behind one URL, under `{tenant}/{digest}`."""

import errno
import hashlib
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
import structlog
from obstore import exceptions
from uuid_utils import uuid4

from ledger.errors import StoreAway

CHUNK = 1024**2
DRAFT = ".tmp"
#: A bucket takes an object in 10,000 parts at most.
PART_BYTES, PARTS, PARTS_AT_ONCE = 8 * 1024**2, 9_000, 4
#: What is slow is a connection that says nothing, not a file that is long: the default gives a whole file 30 seconds.
CLIENT = {
    "connect_timeout": timedelta(seconds=5),
    "read_timeout": timedelta(seconds=30),
    "timeout": timedelta(days=1),
}
#: Who waits for an answer can ask again, and a long download may break off late and go on where it was.
RETRY = {
    "max_retries": 2,
    "retry_timeout": timedelta(minutes=10),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
}
SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP})
log = structlog.get_logger()


@dataclass(frozen=True)
class Kept:
    """A file by what is in it."""

    digest: str
    size: int


@dataclass(frozen=True)
class Found:
    """What a listing of the store shows."""

    key: str
    size: int
    modified_at: float


class Reading:
    """Bytes on their way out of the store. The request is answered, so the file is there."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self.start, self.end = found.range
        self.size = int(found.meta["size"])

    async def chunks(self) -> AsyncIterator[bytes]:
        with answering():
            async for chunk in self._found.stream(min_chunk_size=CHUNK):
                yield bytes(chunk)


class Store:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._root = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._is_azure = parts.scheme == "az"
        self._store = _open_folder(self._root) if self._root else _open_bucket(url)

    def put(self, tenant: str, digest: str, path: Path) -> None:
        """It appears whole or not at all. The file stays where it is, and must not be written to any more."""
        with answering():
            if self._root is None:
                self._upload(_key(tenant, digest), path)
            else:
                _link(path, self._root / tenant / digest)

    def delete(self, tenant: str, digest: str) -> None:
        """What is not there is deleted already."""
        self.delete_key(_key(tenant, digest))

    def delete_key(self, key: str) -> None:
        try:
            with answering():
                self._store.delete(key)
        except FileNotFoundError:
            pass

    def fetch(self, tenant: str, digest: str, to: Path) -> None:
        """Put a read-only copy at `to`: in a local store a link, which costs no bytes."""
        if self._root is not None:
            try:
                os.link(self._root / tenant / digest, to)
                return
            except OSError as error:
                if error.errno not in NO_LINK:
                    raise
        chunks = self.chunks_of(_key(tenant, digest))
        with to.open("xb") as file:  # never into a file that is there: it may be a link to a blob
            for chunk in chunks:
                file.write(chunk)

    def read(self, tenant: str, digest: str, start: int, length: int) -> bytes:
        with answering():
            return bytes(self._store.get_range(_key(tenant, digest), start=start, length=length))

    def chunks(self, tenant: str, digest: str) -> Iterator[bytes]:
        """Raises FileNotFoundError where there is no such blob."""
        return self.chunks_of(_key(tenant, digest))

    def chunks_of(self, key: str) -> Iterator[bytes]:
        with answering():
            for chunk in self._store.get(key).stream(min_chunk_size=CHUNK):
                yield bytes(chunk)

    def size(self, tenant: str, digest: str) -> int:
        """Raises FileNotFoundError where there is no such blob."""
        with answering():
            return int(self._store.head(_key(tenant, digest))["size"])

    def open(self, tenant: str, digest: str, span: tuple[int, int] | None = None) -> Reading:
        """All of it, or the bytes from the first number to before the second."""
        options = {"range": span} if span else {}
        with answering():
            return Reading(self._store.get(_key(tenant, digest), options=options))

    def sign(self, tenant: str, digest: str, seconds: float) -> str | None:
        """An address that anybody can read this blob from, for a while. None: this store gives no addresses."""
        return self._sign("GET", _key(tenant, digest), seconds)

    def sign_put(self, key: str, seconds: float) -> str | None:
        """An address that anybody can put bytes to. Azure wants a header that a link cannot carry."""
        return None if self._is_azure else self._sign("PUT", key, seconds)

    def list(self, below: str | None = None) -> Iterator[Found]:
        with answering():
            for page in self._store.list(below, chunk_size=1000):
                for entry in page:
                    yield Found(entry["path"], int(entry["size"]), entry["last_modified"].timestamp())

    def is_reachable(self) -> bool:
        try:
            next(self.list(), None)
        except StoreAway:
            return False
        return True

    def _upload(self, key: str, path: Path) -> None:
        part = max(PART_BYTES, -(-path.stat().st_size // PARTS))
        try:
            self._store.put(key, path, chunk_size=part, max_concurrency=PARTS_AT_ONCE)
        except FileNotFoundError as error:
            if not path.exists():
                raise
            raise _away(error, passes=False) from error  # the bucket itself

    def _sign(self, method: Any, key: str, seconds: float) -> str | None:
        if self._root is not None:
            return None
        try:
            with answering():
                return str(obstore.sign(self._store, method, key, timedelta(seconds=seconds)))
        except StoreAway:
            return None  # not every kind of credentials can sign


def hash_file(path: Path) -> Kept:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Kept(digest=digest, size=path.stat().st_size)


@contextmanager
def answering() -> Iterator[None]:
    """What stores raise, as what the rest of the code knows: not there, no room, or does not answer."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError) as error:
        raise _away(error, passes=False) from error
    except exceptions.BaseError as error:
        raise _away(error, passes=True) from error
    except OSError as error:
        if error.errno in FULL:
            raise
        raise _away(error, passes=True) from error


def _away(error: Exception, passes: bool) -> StoreAway:
    """Addresses and the store's own words are for the log, not for the caller."""
    log.warning("store.away", error=(str(error).splitlines() or [repr(error)])[0])
    return StoreAway(passes)


def _open_folder(root: Path) -> Any:
    return obstore.store.LocalStore(root, mkdir=True)


def _open_bucket(url: str) -> Any:
    """Credentials, region and endpoint come from the usual environment, or from files that it names."""
    plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes")
    options: Any = {"client_options": {**CLIENT, "allow_http": plain}, "retry_config": RETRY, "config": _secrets()}
    try:
        return obstore.store.from_url(url, **options)
    except exceptions.BaseError as error:
        sys.exit(f"flashcards: FLASHCARDS_STORE_URL cannot be used: {str(error).splitlines()[0]}")


def _secrets() -> dict[str, str] | None:
    """`AWS_SECRET_ACCESS_KEY_FILE=/run/secrets/...`: a secret in a file is in no process list and no inspection."""
    paths = {name: os.environ[f"{name}_FILE"] for name in SECRETS if os.environ.get(f"{name}_FILE")}
    try:
        return {name.lower(): Path(path).read_text().strip() for name, path in paths.items()} or None
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"flashcards: a secret of the store cannot be read: {error}")


def _link(path: Path, target: Path) -> None:
    """A second name for the file where the file system can; the last step is a rename."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{uuid4().hex}{DRAFT}")
    path.chmod(0o444)
    try:
        try:
            os.link(path, draft)
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
            shutil.copyfile(path, draft)
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)  # a rename onto another name of the same file does nothing


def _key(tenant: str, digest: str) -> str:
    return f"{tenant}/{digest}"
