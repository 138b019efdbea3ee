from typing import Annotated, cast, get_args

import typer

from flashcards.cli.options import AsJson, Id, Ids, Labels, Limit, as_labels, connect
from flashcards.cli.output import age, moment, print_deleted, print_item, print_json, print_list, say
from flashcards.contract.webhooks import LONGEST_GRACE_HOURS, Delivery, DeliveryState, EventType, MadeWebhook, Webhook

app = typer.Typer(no_args_is_help=True)
COLUMNS = ("id", "name", "url", "events", "labels")
DELIVERY_COLUMNS = ("id", "type", "job", "state", "tries", "last", "next")
DeliveryArgument = Annotated[str, typer.Argument(metavar="DELIVERY", show_default=False)]


@app.command()
def create(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(help="where deliveries are posted to", show_default=False)],
    event: Annotated[
        list[str], typer.Option(show_default=False, help=f"{', '.join(get_args(EventType))}; may be repeated")
    ],
    label: Labels = None,
    name: Annotated[str | None, typer.Option(show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Make a webhook and print its secret, once."""
    with connect(ctx) as client:
        _print_made(client.webhooks.create(url, cast(list[EventType], event), as_labels(label), name), as_json)


@app.command()
def rotate(
    ctx: typer.Context,
    id: Id,
    grace_hours: Annotated[
        float, typer.Option(min=0, max=LONGEST_GRACE_HOURS, help="how long the secret before signs as well")
    ] = 24,
    as_json: AsJson = False,
) -> None:
    """Make a new secret and print it, once."""
    with connect(ctx) as client:
        _print_made(client.webhooks.rotate(id, grace_hours), as_json)


@app.command()
def ls(ctx: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List webhooks."""
    with connect(ctx) as client:
        print_list(client.webhooks.each(), limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a webhook."""
    with connect(ctx) as client:
        print_item(client.webhooks.get(id), _facts, as_json)


@app.command()
def rm(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Delete webhooks, and what they were still to be told."""
    with connect(ctx) as client:
        for id in ids:
            client.webhooks.delete(id)
    print_deleted(ids, as_json)


@app.command()
def deliveries(
    ctx: typer.Context,
    id: Id,
    state: Annotated[DeliveryState | None, typer.Option(show_default=False, help="only those in this state")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List what was sent or is to be sent, and how the last try went."""
    with connect(ctx) as client:
        print_list(client.webhooks.each_delivery(id, state), limit, DELIVERY_COLUMNS, _delivery_row, as_json)


@app.command()
def redeliver(ctx: typer.Context, id: Id, delivery: DeliveryArgument, as_json: AsJson = False) -> None:
    """Send a delivery again, now and under the same id."""
    with connect(ctx) as client:
        again = client.webhooks.redeliver(id, delivery)
    print_json(again) if as_json else say(f"{again.id} is sent again")


def _print_made(made: MadeWebhook, as_json: bool) -> None:
    """The secret alone on standard output, so that a script can keep it."""
    if as_json:
        print_json(made)
        return
    say(f"{made.id}: keep this secret, it is shown only now")
    typer.echo(made.secret)


def _labels(webhook: Webhook) -> str:
    return ",".join(f"{key}={value}" for key, value in webhook.labels.items())


def _row(webhook: Webhook) -> tuple[object, ...]:
    return webhook.id, webhook.name or "", webhook.url, ",".join(webhook.events), _labels(webhook)


def _facts(webhook: Webhook) -> list[tuple[str, object]]:
    until = webhook.previous_until
    return [
        ("id", webhook.id),
        ("name", webhook.name or ""),
        ("url", webhook.url),
        ("events", ", ".join(webhook.events)),
        ("labels", _labels(webhook) or "any"),
        ("secret begins", webhook.hint),
        *([("secret before", f"good until {moment(until)}")] if until else []),
        ("created", moment(webhook.created_at)),
    ]


def _delivery_row(delivery: Delivery) -> tuple[object, ...]:
    last = delivery.tries[-1] if delivery.tries else None
    told = "" if last is None else f"{age(last.at)} ago: {last.reason or last.status or 'under way'}"
    following = moment(delivery.next_try_at) if delivery.next_try_at else ""
    number = last.number if last else 0
    return delivery.id, delivery.type, delivery.job or "", delivery.state, number, told, following
