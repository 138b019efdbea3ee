from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.filesize import decimal

from flashcards.cli.options import AsJson, Id, Ids, Limit, Target, connect
from flashcards.cli.output import age, moment, print_deleted, print_item, print_list, print_path
from flashcards.contract.resources import Flashcards

app = typer.Typer(no_args_is_help=True)
FileFormat = Literal["npy", "npz", "parquet"]
BY_SUFFIX: dict[str, FileFormat] = {".npz": "npz", ".parquet": "parquet"}
COLUMNS = ("id", "name", "count", "r", "age")


@app.command()
def ls(ctx: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List sets of flashcards."""
    with connect(ctx) as client:
        print_list(client.flashcards.each(), limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a set and its recipe."""
    with connect(ctx) as client:
        print_item(client.flashcards.get(id), _facts, as_json)


@app.command()
def pull(
    ctx: typer.Context,
    id: Id,
    to: Target = Path(),
    format: Annotated[
        FileFormat | None,
        typer.Option(
            help="npy, npz (array x), or parquet with a PNG a card", show_default="by the name of --to, or npy"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download all cards as one file: an array N x H x W x C, or pictures."""
    chosen: FileFormat = format or BY_SUFFIX.get(to.suffix, "npy")
    with connect(ctx) as client:
        print_path(client.flashcards.download(id, to, chosen), as_json)


@app.command()
def sheet(ctx: typer.Context, id: Id, to: Target = Path(), as_json: AsJson = False) -> None:
    """Download the contact sheet, a PNG."""
    with connect(ctx) as client:
        print_path(client.flashcards.sheet(id, to), as_json)


@app.command()
def rm(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Delete sets of flashcards."""
    with connect(ctx) as client:
        for id in ids:
            client.flashcards.delete(id)
    print_deleted(ids, as_json)


def _row(cards: Flashcards) -> tuple[object, ...]:
    return cards.id, cards.name or "", f"{cards.recipe.count:,}", cards.recipe.r, age(cards.created_at)


def _facts(cards: Flashcards) -> list[tuple[str, object]]:
    recipe = cards.recipe
    return [
        ("id", cards.id),
        ("name", cards.name or ""),
        ("cards", f"{recipe.count:,} of {recipe.input}, {recipe.dtype}"),
        ("source", f"{recipe.source}, r {recipe.r}, seed {recipe.seed}"),
        ("made with", f"{recipe.backend}, threads {recipe.threads}, chunk {recipe.chunk}"),
        ("model", cards.model),
        ("job", cards.job),
        ("created", moment(cards.created_at)),
        ("size", decimal(cards.size)),
        ("digest", cards.digest),
    ]
