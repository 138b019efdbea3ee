"""Who comes in, by API key. Only a keyed hash of a key is kept: a stolen database opens no door."""

import hashlib
import hmac
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from flashcards.contract import tokens
from ledger.clock import now
from ledger.db import Database
from ledger.errors import NotFound
from ledger.ids import new_id
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, ApiKey, Tenant

SCOPES = ("read", "write", "admin")
SHORTEST_SECRET = 32
LAST_USED_SECONDS = 60
log = structlog.get_logger()


@dataclass(frozen=True)
class Principal:
    """Who asks. Without keys that is whoever sits at this machine."""

    tenant: str = DEFAULT_TENANT
    key_id: str | None = None
    scopes: frozenset[str] = frozenset(SCOPES)
    retain_data: bool = True
    requests_per_minute: int | None = None
    max_unfinished_jobs: int | None = None
    max_stored_bytes: int | None = None

    @property
    def is_operator(self) -> bool:
        """The first tenant runs the service: it makes tenants and sees figures of all of them."""
        return self.tenant == DEFAULT_TENANT and "admin" in self.scopes


class BadKey(Exception):
    """A key that opens nothing, and why."""


class NoSecret(Exception):
    """There are keys, and what they were hashed with is not known here."""


class Keyring:
    def __init__(self, db: Database, secret: str) -> None:
        self._db = db
        self._secret = secret.encode()

    def digest(self, token: str) -> str:
        return hmac.new(self._secret, token.encode(), hashlib.sha256).hexdigest()

    def recognise(self, token: str) -> Principal:
        if not tokens.is_token(token):
            raise BadKey("that is not a key of this service: part of it may be missing")
        with self._db.read() as session:
            row, at = self._look_up(session, token)
        if row.revoked_at is not None:
            raise BadKey("this key was revoked")
        if row.expires_at is not None and row.expires_at <= at:
            raise BadKey("this key has expired")
        if row.last_used_at is None or row.last_used_at < at - LAST_USED_SECONDS:
            self._mark_used(row.id)
        return _principal(row)

    def add(self, session: Session, tenant: str, token: str, **values: Any) -> ApiKey:
        """In the caller's transaction; a tenant that is new begins with its first key."""
        insert = (sqlite if self._db.is_sqlite else postgresql).insert
        session.execute(insert(Tenant).values(id=tenant).on_conflict_do_nothing())
        row = ApiKey(id=new_id("key"), tenant=tenant, digest=self.digest(token), hint=tokens.hint(token), **values)
        session.add(row)
        session.flush()
        return row

    def _look_up(self, session: Session, token: str) -> tuple[ApiKey, float]:
        found = session.execute(BY_DIGEST, {"digest": self.digest(token)}).one_or_none()
        if found is None:
            raise BadKey("nobody here knows this key")
        return found[0], found[1]

    def _mark_used(self, key_id: str) -> None:
        with self._db.write() as session:
            session.execute(update(ApiKey).where(ApiKey.id == key_id).values(last_used_at=now()))


BY_DIGEST = select(ApiKey, now()).where(ApiKey.digest == bindparam("digest"))


def find(session: Session, tenant: str | None, key_id: str) -> ApiKey:
    """`tenant` None: the operator looks for it."""
    row = session.get(ApiKey, key_id)
    if row is None or tenant not in (None, row.tenant):
        raise NotFound("key", key_id)
    return row


def revoke(session: Session, row: ApiKey) -> None:
    """For good; the row stays, so that what the key did keeps its name."""
    still_good = (ApiKey.id == row.id, ApiKey.revoked_at.is_(None))
    session.execute(update(ApiKey).where(*still_good).values(revoked_at=now()))


def keyring_to_read(settings: Settings, db: Database) -> Keyring | None:
    """For a worker, which knows keys and makes none. None: there are none, and whoever reaches the broker may come in.

    Alone on one machine the settings say whether there are keys. Elsewhere a worker need not be told of the first key,
    but where anything hints at keys it must not let anybody in without one: raises NoSecret where it cannot tell.
    """
    if settings.admin_key_file is None and not settings.database_url:
        return None
    if settings.key_secret:
        return Keyring(db, settings.key_secret)
    made = settings.home / "key-secret"
    if not settings.database_url and made.exists():
        return Keyring(db, made.read_text().strip())
    if settings.admin_key_file is not None or _any_key(db):
        raise NoSecret("keys are in use, and FLASHCARDS_KEY_SECRET(_FILE) is not set here")
    return None


def _any_key(db: Database) -> bool:
    with db.read() as session:
        return session.scalar(select(ApiKey.id).limit(1)) is not None


def open_keyring(settings: Settings, db: Database) -> Keyring | None:
    """None: there are no keys, and nobody but this machine is answered."""
    if settings.admin_key_file is None:
        return None
    keyring = Keyring(db, _secret(settings))
    _admit_first_key(keyring, db, _first_token(settings.admin_key_file))
    return keyring


def mark_of_secret(settings: Settings) -> str | None:
    """By which two installations see whether keys of the one open the other. None: there is no secret yet."""
    path = settings.home / "key-secret"
    secret = settings.key_secret or (path.read_text().strip() if path.exists() else "")
    return hmac.new(secret.encode(), b"a mark of this secret", hashlib.sha256).hexdigest() if secret else None


def _admit_first_key(keyring: Keyring, db: Database, token: str) -> None:
    with db.write() as session:
        insert = (sqlite if db.is_sqlite else postgresql).insert
        row = insert(ApiKey).values(
            id=new_id("key"),
            tenant=DEFAULT_TENANT,
            name="FLASHCARDS_ADMIN_KEY_FILE",
            digest=keyring.digest(token),
            hint=tokens.hint(token),
            scopes=list(SCOPES),
            retain_data=True,
        )
        session.execute(row.on_conflict_do_nothing())


def _first_token(path: Path) -> str:
    try:
        if not path.exists():
            _write_private(path, tokens.new_token() + "\n")
            log.info("keys.first_key_made", file=str(path))
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"flashcards: FLASHCARDS_ADMIN_KEY_FILE={path} cannot be read: {error}")
    if not tokens.is_token(token):
        sys.exit(f"flashcards: {path} holds no key; `flashcards keys generate` prints one")
    return token


def _secret(settings: Settings) -> str:
    if settings.key_secret:
        secret = settings.key_secret
    elif settings.database_url:
        sys.exit("flashcards: FLASHCARDS_KEY_SECRET(_FILE) is not set: every API must hash keys with the same secret")
    else:
        path = settings.home / "key-secret"
        if not path.exists():
            _write_private(path, secrets.token_hex(SHORTEST_SECRET))
        secret = path.read_text().strip()
    if len(secret) < SHORTEST_SECRET:
        sys.exit(f"flashcards: FLASHCARDS_KEY_SECRET needs at least {SHORTEST_SECRET} characters")
    return secret


def _write_private(path: Path, text: str) -> None:
    """Whole or not at all, for nobody else's eyes; of several processes that start together one writes it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(0o600)
    draft.write_text(text)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _principal(row: ApiKey) -> Principal:
    return Principal(
        tenant=row.tenant,
        key_id=row.id,
        scopes=frozenset(row.scopes),
        retain_data=row.retain_data,
        requests_per_minute=row.requests_per_minute,
        max_unfinished_jobs=row.max_unfinished_jobs,
        max_stored_bytes=row.max_stored_bytes,
    )
