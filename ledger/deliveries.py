"""The way of a delivery: due, leased for one try, then delivered, due again after a pause, or given up.

Every step is one conditional UPDATE, so any number of couriers may take them. A try whose worker dies leaves a lease
that runs out, and the delivery is sent again under the same id: at least once, never twice at the same time.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from ledger.clock import now
from ledger.db import Database
from ledger.errors import NotFound
from ledger.tables import Delivery, DeliveryTry, Webhook

DAY = 86_400
AT_ONCE = 500  # forgotten in one transaction
TRIES_SHOWN = 50
SPREAD = 0.25  # a pause is up to this much shorter or longer, so that a receiver that was down is not overrun
INSERT_TRY = insert(DeliveryTry.__table__)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Parcel:
    """A delivery that is ours to try, once."""

    delivery: Delivery
    webhook: Webhook
    at: float  # by the database's clock

    @property
    def number(self) -> int:
        return self.delivery.tries


@dataclass(frozen=True)
class Outcome:
    """How a try went. A reason says why it was not taken, and `final` that another makes no sense."""

    seconds: float
    status: int | None = None
    reason: str | None = None
    final: bool = False


def waiting(db: Database, busy: Iterable[str], limit: int) -> Sequence[str]:
    """Webhooks with something due, whoever waits longest first, but for those that are busy."""
    due = select(Delivery.webhook_id).where(_is_due(), Delivery.webhook_id.not_in(list(busy)))
    due = due.group_by(Delivery.webhook_id).order_by(func.min(Delivery.due_at)).limit(limit)
    with db.read() as session:
        return session.scalars(due).all()


def claim(db: Database, webhook_id: str, limit: int, lease_seconds: float) -> list[Parcel]:
    """The oldest of one webhook. Of any number of couriers one gets each of them."""
    oldest = select(Delivery.id).where(Delivery.webhook_id == webhook_id, _is_due())
    oldest = oldest.order_by(Delivery.due_at).limit(limit).with_for_update(skip_locked=True)
    taken = update(Delivery).where(Delivery.id.in_(select(oldest.cte("oldest").c.id)), _is_due())
    with db.write() as session:
        rows = session.scalars(
            taken.values(tries=Delivery.tries + 1, leased_until=now() + lease_seconds)
            .returning(Delivery)
            .execution_options(synchronize_session=False)
        ).all()
        if not rows:
            return []
        session.connection().execute(INSERT_TRY, [{"delivery_id": row.id, "number": row.tries} for row in rows])
        webhook, at = session.execute(select(Webhook, now()).where(Webhook.id == webhook_id)).one()
    return [Parcel(row, webhook, at) for row in rows]


def finish(db: Database, parcel: Parcel, outcome: Outcome, pauses: Sequence[float]) -> str | None:
    """The state that it is in then; None: it is gone, or another courier has it since."""
    with db.write() as session:
        _close(session, parcel, seconds=outcome.seconds, status=outcome.status, reason=outcome.reason)
        if outcome.reason is None:  # taken is taken, whoever else tries meanwhile
            return _change(session, parcel, state="delivered", due_at=None)
        mine = Delivery.tries == parcel.number
        not_asked_again = Delivery.tries_before == parcel.delivery.tries_before
        return _change(session, parcel, mine, not_asked_again, **_after(parcel, outcome, pauses)) or _change(
            session, parcel, mine
        )


def give_back(db: Database, parcels: Iterable[Parcel], reason: str) -> None:
    """Their courier closes in the middle of a try: the next may have them at once, and it costs none."""
    with db.write() as session:
        for parcel in parcels:
            _close(session, parcel, reason=reason, seconds=0.0)
            mine = Delivery.tries == parcel.number
            _change(session, parcel, mine, tries_before=Delivery.tries_before + 1)


def redeliver(session: Session, tenant: str, webhook_id: str, delivery_id: str) -> Delivery:
    """From the first pause on again, under the same id. One that is on its way is left to whoever carries it."""
    find(session, tenant, webhook_id, delivery_id)
    again = update(Delivery).where(Delivery.id == delivery_id)
    return session.scalars(
        again.values(state="pending", due_at=now(), tries_before=Delivery.tries)
        .returning(Delivery)
        .execution_options(synchronize_session=False, populate_existing=True)
    ).one()


def find(session: Session, tenant: str, webhook_id: str, delivery_id: str) -> Delivery:
    row = session.get(Delivery, delivery_id)
    if row is None or (row.tenant, row.webhook_id) != (tenant, webhook_id):
        raise NotFound("delivery", delivery_id)
    return row


def tries_of(session: Session, deliveries: Iterable[Delivery]) -> dict[str, list[DeliveryTry]]:
    """The last of each, in order."""
    found: dict[str, list[DeliveryTry]] = {row.id: [] for row in deliveries}
    theirs = and_(Delivery.id == DeliveryTry.delivery_id, DeliveryTry.number > Delivery.tries - TRIES_SHOWN)
    statement = select(DeliveryTry).join(Delivery, theirs).where(Delivery.id.in_(list(found)))
    for row in session.scalars(statement.order_by(DeliveryTry.number)):
        found[row.delivery_id].append(row)
    return found


def forget(db: Database, days: float) -> int:
    """Those that came to their end so long ago that nobody will ask for them again."""
    with db.write() as session:
        old = select(Delivery.id).where(Delivery.state != "pending", Delivery.created_at < now() - days * DAY)
        ids = session.scalars(old.limit(AT_ONCE)).all()
        session.execute(delete(Delivery).where(Delivery.id.in_(ids)))
    return len(ids)


def _is_due() -> ColumnElement[bool]:
    moment = select(now()).scalar_subquery()  # once for all rows, so that the index is of use
    free = or_(Delivery.leased_until.is_(None), Delivery.leased_until < moment)
    return and_(Delivery.due_at.is_not(None), Delivery.due_at <= moment, free)


def _after(parcel: Parcel, outcome: Outcome, pauses: Sequence[float]) -> dict[str, Any]:
    """Of a try that failed."""
    done = parcel.number - parcel.delivery.tries_before
    if outcome.final or done > len(pauses):
        return {"state": "given_up", "due_at": None}
    return {"due_at": now() + pauses[done - 1] * random.uniform(1 - SPREAD, 1 + SPREAD)}


def _change(session: Session, parcel: Parcel, *where: ColumnElement[bool], **values: Any) -> str | None:
    """And the lease ends."""
    open_still = update(Delivery).where(Delivery.id == parcel.delivery.id, Delivery.state == "pending", *where)
    changed = open_still.values(leased_until=None, **values).returning(Delivery.state)
    return session.scalar(changed.execution_options(synchronize_session=False))


def _close(session: Session, parcel: Parcel, **values: Any) -> None:
    mine = (DeliveryTry.delivery_id == parcel.delivery.id, DeliveryTry.number == parcel.number)
    open_still = DeliveryTry.seconds.is_(None)
    session.execute(
        update(DeliveryTry).where(*mine, open_still).values(**values).execution_options(synchronize_session=False)
    )
