"""Who is told of what. A secret is made from a seed in the database and from `FLASHCARDS_WEBHOOK_SECRET`.

So with that setting a stolen database signs nothing, and what is kept here alone is never shown to anybody.
"""

import base64
import hashlib
import hmac
import secrets
from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session
from standardwebhooks import Webhook as Signer

from flashcards.contract.webhooks import NewWebhook
from ledger import scope
from ledger.clock import now
from ledger.errors import Conflict
from ledger.ids import new_id
from ledger.tables import Webhook

PREFIX = "whsec_"
MOST = 50  # of one tenant: each is looked at whenever a job of it ends


class OtherSecret(Exception):
    """The setting is not the one that a webhook was made with."""


def create(session: Session, tenant: str, asked: NewWebhook, setting: str) -> tuple[Webhook, str]:
    """And its secret, which is for the caller's eyes and no others."""
    if (session.scalar(select(func.count()).where(Webhook.tenant == tenant)) or 0) >= MOST:
        raise Conflict(f"there are {MOST} webhooks, which is as many as there may be: delete one")
    seed, secret = _new(setting)
    row = Webhook(
        id=new_id("webhook"),
        tenant=tenant,
        name=asked.name,
        url=asked.url,
        events=sorted(set(asked.events)),
        labels=dict(asked.labels),
        seed=seed,
        hint=_hint(secret),
    )
    session.add(row)
    session.flush()
    return row, secret


def find(session: Session, tenant: str, webhook_id: str) -> Webhook:
    return scope.find(session, Webhook, tenant, webhook_id)


def rotate(session: Session, tenant: str, webhook_id: str, grace_hours: float, setting: str) -> tuple[Webhook, str]:
    """The secret before signs beside the new one for so long, and the one before that no more."""
    find(session, tenant, webhook_id)
    seed, secret = _new(setting)
    changed = update(Webhook).where(Webhook.id == webhook_id, Webhook.tenant == tenant)
    row = session.scalars(
        changed.values(
            previous_seed=Webhook.seed,
            previous_until=now() + grace_hours * 3600,
            seed=seed,
            hint=_hint(secret),
        )
        .returning(Webhook)
        .execution_options(synchronize_session=False, populate_existing=True)
    ).one()
    return row, secret


def sign(row: Webhook, setting: str, delivery_id: str, at: datetime, body: str) -> str:
    """The header `webhook-signature`; with two signatures where the secret before is still good."""
    secret = _made(row.seed, setting)
    if _hint(secret) != row.hint:
        raise OtherSecret("FLASHCARDS_WEBHOOK_SECRET is not what this webhook was made with: rotate its secret")
    good = [secret]
    if row.previous_seed and row.previous_until and at.timestamp() < row.previous_until:
        good.append(_made(row.previous_seed, setting))
    return " ".join(Signer(each).sign(delivery_id, at, body) for each in good)


def _new(setting: str) -> tuple[str, str]:
    seed = secrets.token_hex(32)
    return seed, _made(seed, setting)


def _made(seed: str, setting: str) -> str:
    return PREFIX + base64.b64encode(hmac.new(setting.encode(), bytes.fromhex(seed), hashlib.sha256).digest()).decode()


def _hint(secret: str) -> str:
    return secret[: len(PREFIX) + 4]
