from itertools import islice

import typer
from rich.filesize import decimal

from flashcards.cli.options import AsJson, Limit, connect
from flashcards.cli.output import age, moment, print_facts, print_json, print_table, say
from flashcards.contract.resources import Storage, StoredFile

COLUMNS = ("digest", "size", "age", "until", "kept for")
NAMES_SHOWN = 2


def add_to(app: typer.Typer) -> None:
    app.command(name="storage")(storage)


def storage(ctx: typer.Context, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show what is kept, how large, for whom and until when."""
    with connect(ctx) as client:
        sums = client.storage(limit=1)
        files = list(islice(client.stored_files(), limit))
    if as_json:
        print_json(sums.model_copy(update={"items": files, "next_cursor": None}))
        return
    print_facts(_facts(sums))
    if files:
        typer.echo()
        print_table(COLUMNS, map(_row, files))
    if sums.files > len(files):
        say(f"there are {sums.files}: --limit lists more")


def _facts(sums: Storage) -> list[tuple[str, object]]:
    kinds = [(name.replace("_", " "), amount) for name, amount in sums.kinds if amount.count]
    return [
        ("all", _amount(sums.files, sums.bytes)),
        *((name, _amount(amount.count, amount.bytes)) for name, amount in kinds),
    ]


def _amount(count: int, size: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}, {decimal(size)}"


def _row(file: StoredFile) -> tuple[object, ...]:
    until = moment(file.expires_at) if file.expires_at else "-"
    return file.digest[:12], decimal(file.size), age(file.created_at), until, _names(file.kept_for)


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN]) or "nobody"
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
