from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.resources import Page
from flashcards.contract.webhooks import (
    Delivery,
    DeliveryId,
    DeliveryState,
    MadeWebhook,
    NewWebhook,
    Rotation,
    Webhook,
    WebhookId,
)
from ledger import deliveries, paging, scope, tables, webhooks
from service import views
from service.deps import HouseDep, IdempotencyKey, TenantDep
from service.idempotency import fingerprint, once
from service.paging import Cursor, Limit, decode_cursor
from service.webhooks.address import check_address

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])


@router.post("", status_code=201, response_model=MadeWebhook)
def create_webhook(
    asked: NewWebhook, request: Request, house: HouseDep, tenant: TenantDep, idempotency_key: IdempotencyKey = None
) -> Response:
    """Be told when jobs end. This answer is the only place where its secret can be read."""
    mark = fingerprint("POST", request.url.path, asked.model_dump_json())
    with once(house.db, tenant, idempotency_key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        check_address(asked.url, house.settings)
        with house.db.write() as session:
            row, secret = webhooks.create(session, tenant, asked, house.settings.webhook_secret)
            location = f"/v1/webhooks/{row.id}"
            # What a replay answers with is stored, and the secret must not be.
            attempt.keep(session, mark, 201, _made(row, None), location)
            return _shown_once(row, secret, 201, location)


@router.get("")
def list_webhooks(house: HouseDep, tenant: TenantDep, limit: Limit = 50, cursor: Cursor = None) -> Page[Webhook]:
    before = decode_cursor(cursor, "webhook")
    with house.db.read() as session:
        theirs = scope.scoped(tables.Webhook, tenant)
        rows, last = paging.page(session, theirs, tables.Webhook.id, limit, before)
        return views.page([views.webhook(row) for row in rows], last)


@router.get("/{webhook_id}")
def get_webhook(webhook_id: WebhookId, house: HouseDep, tenant: TenantDep) -> Webhook:
    with house.db.read() as session:
        return views.webhook(webhooks.find(session, tenant, webhook_id))


@router.delete("/{webhook_id}", status_code=204)
def delete_webhook(webhook_id: WebhookId, house: HouseDep, tenant: TenantDep) -> None:
    """With its deliveries: those that are not there yet are not sent any more."""
    with house.db.write() as session:
        session.delete(webhooks.find(session, tenant, webhook_id))


@router.post("/{webhook_id}/rotate", response_model=MadeWebhook)
def rotate_webhook_secret(
    webhook_id: WebhookId,
    request: Request,
    house: HouseDep,
    tenant: TenantDep,
    asked: Rotation = Rotation(),
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """A new secret, shown this once. For a while deliveries are signed with the one before as well."""
    mark = fingerprint("POST", request.url.path, asked.model_dump_json())
    with once(house.db, tenant, idempotency_key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        with house.db.write() as session:
            setting = house.settings.webhook_secret
            row, secret = webhooks.rotate(session, tenant, webhook_id, asked.grace_hours, setting)
            attempt.keep(session, mark, 200, _made(row, None), None)
            return _shown_once(row, secret, 200, None)


@router.get("/{webhook_id}/deliveries")
def list_deliveries(
    webhook_id: WebhookId,
    house: HouseDep,
    tenant: TenantDep,
    state: Annotated[DeliveryState | None, Query(description="only those in this state")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Delivery]:
    """What was sent or is to be sent, with every try: when, how long, what was answered."""
    before = decode_cursor(cursor, "delivery")
    with house.db.read() as session:
        webhooks.find(session, tenant, webhook_id)
        statement = select(tables.Delivery).where(tables.Delivery.webhook_id == webhook_id)
        if state is not None:
            statement = statement.where(tables.Delivery.state == state)
        rows, last = paging.page(session, statement, tables.Delivery.id, limit, before)
        tries = deliveries.tries_of(session, rows)
        return views.page([views.delivery(row, tries[row.id]) for row in rows], last)


@router.get("/{webhook_id}/deliveries/{delivery_id}")
def get_delivery(webhook_id: WebhookId, delivery_id: DeliveryId, house: HouseDep, tenant: TenantDep) -> Delivery:
    with house.db.read() as session:
        return _view(session, deliveries.find(session, tenant, webhook_id, delivery_id))


@router.post("/{webhook_id}/deliveries/{delivery_id}/redeliver", status_code=202, response_model=Delivery)
def redeliver(
    webhook_id: WebhookId,
    delivery_id: DeliveryId,
    request: Request,
    house: HouseDep,
    tenant: TenantDep,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Send it again, now and under the same id, however it went before."""
    mark = fingerprint("POST", request.url.path)
    with once(house.db, tenant, idempotency_key) as attempt:
        before = attempt.answered_before(mark)
        if before is not None:
            return before
        with house.db.write() as session:
            row = deliveries.redeliver(session, tenant, webhook_id, delivery_id)
            location = f"/v1/webhooks/{webhook_id}/deliveries/{delivery_id}"
            return attempt.keep(session, mark, 202, _view(session, row).model_dump_json(), location)


def _view(session: Session, row: tables.Delivery) -> Delivery:
    return views.delivery(row, deliveries.tries_of(session, [row])[row.id])


def _made(row: tables.Webhook, secret: str | None) -> str:
    return MadeWebhook(**dict(views.webhook(row)), secret=secret).model_dump_json()


def _shown_once(row: tables.Webhook, secret: str, status: int, location: str | None) -> Response:
    headers = {"Cache-Control": "no-store", **({"Location": location} if location else {})}
    return Response(_made(row, secret), status, headers, "application/json")
