from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from flashcards.cli.bars import transfer_bar
from flashcards.cli.options import AsJson, ExistingFile, Id, Ids, Limit, Target, as_architecture, connect
from flashcards.cli.output import age, moment, print_deleted, print_item, print_list, print_path
from flashcards.contract.resources import Lineage, Model

app = typer.Typer(no_args_is_help=True)
COLUMNS = ("id", "name", "architecture", "input", "age")


@app.command()
def push(
    ctx: typer.Context,
    file: ExistingFile,
    name: Annotated[str | None, typer.Option(show_default="the file's name")] = None,
    architecture: Annotated[
        str | None, typer.Option(show_default="from the file's metadata", help="a name such as blk_4_fil_64, or JSON")
    ] = None,
    input: Annotated[str | None, typer.Option(help="height x width x channels", show_default="32x32x3")] = None,
    range: Annotated[str | None, typer.Option(help="the network's pixel values", show_default="0,1")] = None,
    as_json: AsJson = False,
) -> None:
    """Upload a safetensors file, or a .pt state dict."""
    with connect(ctx) as client, transfer_bar(file.name, quiet=as_json) as progress:
        model = client.models.push(file, name, as_architecture(architecture), input, range, progress)
    print_item(model, _facts, as_json)


@app.command()
def ls(ctx: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List models."""
    with connect(ctx) as client:
        print_list(client.models.each(), limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a model."""
    with connect(ctx) as client:
        print_item(client.models.get(id), _facts, as_json)


@app.command()
def pull(ctx: typer.Context, id: Id, to: Target = Path(), as_json: AsJson = False) -> None:
    """Download the weights, a safetensors file."""
    with connect(ctx) as client:
        print_path(client.models.weights(id, to), as_json)


@app.command()
def probe(ctx: typer.Context, id: Id, file: ExistingFile, as_json: AsJson = False) -> None:
    """Attach a probe: images x and your own network's answers y, which every use is checked against."""
    with connect(ctx) as client:
        print_item(client.models.probe(id, file), _facts, as_json)


@app.command()
def lineage(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show where a model came from and what was made of it."""
    with connect(ctx) as client:
        print_item(client.models.lineage(id), _descent, as_json)


@app.command()
def rm(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Delete models."""
    with connect(ctx) as client:
        for id in ids:
            client.models.delete(id)
    print_deleted(ids, as_json)


def _row(model: Model) -> tuple[object, ...]:
    return model.id, model.name, model.architecture_name, str(model.input), age(model.created_at)


def _facts(model: Model) -> list[tuple[str, object]]:
    low, high = model.range
    return [
        ("id", model.id),
        ("name", model.name),
        ("architecture", f"{model.architecture_name}, {model.architecture.manner}"),
        ("parameters", f"{model.parameters:,}"),
        ("input", f"{model.input}, {low:g} to {high:g}"),
        ("origin", model.origin),
        *([("job", model.job)] if model.job else []),
        *([("probe", model.probe)] if model.probe else []),
        ("created", moment(model.created_at)),
        ("size", decimal(model.size)),
        ("digest", model.digest),
        *([("uploaded as", model.uploaded_digest)] if model.uploaded_digest else []),
        *((theirs, f"taken for {ours}") for theirs, ours in (model.mapping or {}).items()),
    ]


def _descent(lineage: Lineage) -> list[tuple[str, object]]:
    return [
        ("model", lineage.model),
        ("made by", lineage.job or "upload"),
        ("made from", ", ".join(lineage.made_from) or "-"),
        ("flashcards", ", ".join(lineage.flashcards) or "-"),
        ("used by", ", ".join(lineage.used_by) or "-"),
    ]
