from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from flashcards.cli.options import AsJson, Id, Ids, Limit, connect, given
from flashcards.cli.output import age, moment, print_deleted, print_item, print_json, print_list, say
from flashcards.contract.keys import Key, MadeKey, NewKey
from flashcards.contract.tokens import new_token

app = typer.Typer(no_args_is_help=True)
COLUMNS = ("id", "name", "tenant", "begins", "scopes", "state", "used")


def _about(field: str) -> str | None:
    return NewKey.model_fields[field].description


@app.command()
def generate(as_json: AsJson = False) -> None:
    """Print a new key that no service knows yet, for FLASHCARDS_ADMIN_KEY_FILE."""
    key = new_token()
    print_json({"key": key}) if as_json else typer.echo(key)


@app.command()
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="who or what it is for")],
    scope: Annotated[
        list[str] | None, typer.Option(show_default="read, write", help="read, write or admin; may be given many times")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help=_about("tenant"))] = None,
    days: Annotated[float | None, typer.Option(min=0, help="how long it is good", show_default="for ever")] = None,
    requests_per_minute: Annotated[int | None, typer.Option(min=1, help=_about("requests_per_minute"))] = None,
    max_unfinished_jobs: Annotated[int | None, typer.Option(min=1, help=_about("max_unfinished_jobs"))] = None,
    max_stored_bytes: Annotated[int | None, typer.Option(min=1, help=_about("max_stored_bytes"))] = None,
    retain_data: Annotated[bool, typer.Option(help=_about("retain_data"))] = True,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once."""
    expires_at = (datetime.now(UTC) + timedelta(days=days)).isoformat() if days else None
    fields = given(
        scopes=scope,
        tenant=tenant,
        expires_at=expires_at,
        requests_per_minute=requests_per_minute,
        max_unfinished_jobs=max_unfinished_jobs,
        max_stored_bytes=max_stored_bytes,
        retain_data=retain_data,
    )
    with connect(ctx) as client:
        made = client.keys.create(name, **fields)
    _print_made(made, as_json)


def _print_made(made: MadeKey, as_json: bool) -> None:
    """The key alone on standard output, so that a script can keep it."""
    if as_json:
        print_json(made)
        return
    say(f"{made.id}: keep this key, it is shown only now")
    typer.echo(made.key)


@app.command()
def ls(ctx: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List keys, the revoked ones among them."""
    with connect(ctx) as client:
        print_list(client.keys.each(), limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a key's rights and limits."""
    with connect(ctx) as client:
        print_item(client.keys.get(id), _facts, as_json)


@app.command()
def revoke(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Let keys open nothing from now on."""
    with connect(ctx) as client:
        for id in ids:
            client.keys.delete(id)
    print_deleted(ids, as_json)


def _state(key: Key) -> str:
    if key.revoked_at:
        return "revoked"
    if key.expires_at:
        return "expired" if key.expires_at <= datetime.now(UTC) else f"until {moment(key.expires_at)}"
    return "good"


def _row(key: Key) -> tuple[object, ...]:
    used = f"{age(key.last_used_at)} ago" if key.last_used_at else "never"
    return key.id, key.name, key.tenant, key.hint, ",".join(key.scopes), _state(key), used


def _facts(key: Key) -> list[tuple[str, object]]:
    limits = (
        ("requests a minute", key.requests_per_minute),
        ("unfinished jobs", key.max_unfinished_jobs),
        ("stored bytes", key.max_stored_bytes),
    )
    return [
        ("id", key.id),
        ("name", key.name),
        ("tenant", key.tenant),
        ("begins", key.hint),
        ("scopes", ", ".join(key.scopes)),
        ("state", _state(key)),
        *((name, f"at most {most:,}") for name, most in limits if most is not None),
        ("data", "kept" if key.retain_data else "deleted when its job has ended"),
        ("created", moment(key.created_at)),
        ("last used", moment(key.last_used_at) if key.last_used_at else "never"),
    ]
